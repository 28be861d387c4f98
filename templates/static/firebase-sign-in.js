// Signs in with Firebase and posts what it gave to our own form, once. Nothing stays in the browser.
"use strict";
(() => {
  const errors = document.getElementById("firebase-errors");
  const busy = document.getElementById("firebase-busy");
  const form = errors.closest("form");
  const buttons = form.querySelectorAll("button");
  const byId = (id) => document.getElementById(id);

  function show(code) {
    for (const each of errors.children) each.hidden = each.dataset.error !== code;
  }

  function setBusy(isBusy) {
    busy.hidden = !isBusy;
    for (const button of buttons) button.disabled = isBusy;
  }

  function kindOf(error) {
    switch (error && error.code) {
      // The person closed the window, or opened a second one.
      case "auth/popup-closed-by-user":
      case "auth/cancelled-popup-request":
      case "auth/user-cancelled":
        return null;
      case "auth/popup-blocked":
        return "blocked";
      case "auth/user-disabled":
        return "disabled";
      case "auth/too-many-requests":
        return "many";
      case "auth/invalid-credential":
      case "auth/invalid-email":
      case "auth/user-not-found":
      case "auth/wrong-password":
        return "credential";
      default:
        return "other";
    }
  }

  function fail(error) {
    setBusy(false);
    show(kindOf(error));
  }

  const config = JSON.parse(byId("firebase-config").textContent);
  if (typeof firebase === "undefined") {
    show("other");
    return;
  }
  firebase.initializeApp(config.app);
  const auth = firebase.auth();
  auth.useDeviceLanguage();
  if (config.emulator) auth.useEmulator(`http://${config.emulator}`, { disableWarnings: true });
  const ready = auth.setPersistence(firebase.auth.Auth.Persistence.NONE);

  async function send(result) {
    if (!result || !result.user) return false;
    const idToken = await result.user.getIdToken();
    const refreshToken = result.user.refreshToken;
    await auth.signOut();
    form.elements.id_token.value = idToken;
    form.elements.refresh_token.value = refreshToken;
    HTMLFormElement.prototype.submit.call(form);
    return true;
  }

  function google() {
    const provider = new firebase.auth.GoogleAuthProvider();
    provider.setCustomParameters({ prompt: "select_account" });
    return provider;
  }

  async function start(signIn) {
    if (!busy.hidden) return;
    show(null);
    setBusy(true);
    try {
      await send(await signIn());
    } catch (error) {
      fail(error);
    }
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (!byId("email")) return;
    const [email, password] = [byId("email").value, byId("password").value];
    start(() => ready.then(() => auth.signInWithEmailAndPassword(email, password)));
  });
  byId("google-popup")?.addEventListener("click", () => start(() => auth.signInWithPopup(google())));
  byId("google-redirect")?.addEventListener("click", () =>
    start(() => ready.then(() => auth.signInWithRedirect(google()))),
  );
  // A page that the back button brings back is where the person left it: busy.
  window.addEventListener("pageshow", (event) => {
    if (event.persisted) setBusy(false);
  });

  setBusy(true);
  auth
    .getRedirectResult()
    .then(send)
    .then((isSent) => isSent || setBusy(false))
    .catch(fail);
})();
