// Stands in for https://apis.google.com/js/api.js: frames that talk to each other, as Firebase's SDK needs them.
"use strict";
(() => {
  const handlers = {};
  const unheard = {};
  const waiting = {};
  let count = 0;

  function answer(event, { id, name, data }) {
    if (!(name in handlers)) {
      (unheard[name] ??= []).push([event, { id, name, data }]);
      return;
    }
    Promise.resolve(handlers[name](data)).then((reply) =>
      event.source.postMessage({ gapi: "reply", id, reply }, "*"),
    );
  }

  addEventListener("message", (event) => {
    if (event.data?.gapi === "call") answer(event, event.data);
    if (event.data?.gapi === "reply") waiting[event.data.id]?.(event.data.reply);
  });

  function channel(target) {
    const call = (name, data) =>
      new Promise((resolve) => {
        const id = `${Math.random()}:${count++}`;
        waiting[id] = resolve;
        target().postMessage({ gapi: "call", id, name, data }, "*");
      });
    return {
      restyle: () => Promise.resolve(),
      register: (name, handler) => {
        handlers[name] = handler;
        for (const [event, message] of unheard[name]?.splice(0) ?? []) answer(event, message);
      },
      send: (name, data, callback) => call(name, data).then((reply) => callback?.([reply])),
      // The frame may not be there yet to be heard.
      ping: async (callback) => {
        let isHeard = false;
        while (!isHeard) {
          isHeard = await Promise.race([
            call("ping").then(() => true),
            new Promise((resolve) => setTimeout(() => resolve(false), 50)),
          ]);
        }
        callback();
        return [true];
      },
    };
  }

  handlers.ping = () => true;
  const context = {
    getParentIframe: () => channel(() => parent),
    open: ({ where, url, attributes }, callback) => {
      const frame = document.createElement("iframe");
      frame.src = url;
      frame.title = "Firebase";
      Object.assign(frame.style, attributes?.style);
      where.append(frame);
      return callback(channel(() => frame.contentWindow));
    },
  };
  window.gapi = {
    iframes: { CROSS_ORIGIN_IFRAMES_FILTER: {}, getContext: () => context },
    load: (_name, { callback }) => callback(),
  };
  const onload = new URL(document.currentScript.src).searchParams.get("onload");
  setTimeout(() => (onload ? window[onload]?.() : window.gapi_onload?.()));
})();
