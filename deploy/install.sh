#!/usr/bin/env bash
# Installs or upgrades Vademecum from this checkout, on Debian 12, Ubuntu 24.04 or newer. Run it again at any time:
# it brings every part to where it should be, says what it changes, and keeps what the operator has written.
set -euo pipefail
# The server's user reads what root writes; secrets are given their own modes.
umask 022

usage() {
  cat <<'USAGE'
Usage: install.sh --domain NAME [options]     first installation, or upgrade to this checkout
       install.sh --rollback [--dry-run]      back to the release before

  --domain NAME               the public name, such as memory.example.org; later runs know it
  --google-credentials FILE   the key of a service account, for Firestore outside Google Cloud
  --proxy nginx|caddy         install this proxy and its configuration, if there is none yet
  --python PROGRAM            the Python to use, 3.11 to 3.13 (default: python3)
  --root DIR                  put everything below DIR and start nothing
  --dry-run                   say what would be done, do nothing
USAGE
}

say() { printf '%s\n' "$*"; }
fail() { printf 'install.sh: %s\n' "$*" >&2; exit 1; }

domain='' google='' proxy='' root='' python=python3 dry_run='' rollback=''
while [ $# -gt 0 ]; do
  case $1 in
    --domain | --google-credentials | --proxy | --python | --root)
      [ $# -ge 2 ] || fail "$1 needs a value"
      case $1 in
        --domain) domain=$2 ;;
        --google-credentials) google=$2 ;;
        --proxy) proxy=$2 ;;
        --python) python=$2 ;;
        --root) root=${2%/} ;;
      esac
      shift 2 ;;
    --rollback) rollback=yes; shift ;;
    --dry-run) dry_run=yes; shift ;;
    --help | -h) usage; exit 0 ;;
    *) usage >&2; fail "no such option: $1" ;;
  esac
done

here=$(cd "$(dirname "$0")" && pwd -P)
source=$(dirname "$here")
etc=$root/etc/vademecum
opt=$root/opt/vademecum
env_file=$etc/vademecum.env
units=$root/etc/systemd/system

# Runs a command, or says that it would.
run() {
  if [ -n "$dry_run" ]; then say "  would run: $*"; else "$@"; fi
}

# As `run`, for what concerns the whole machine: nothing of it with --root.
on_machine() {
  if [ -z "$root" ]; then run "$@"; fi
}

# put SOURCE TARGET MODE: a file of ours, which follows the release.
put() {
  if cmp -s "$1" "$2"; then
    say "  kept      $2"
    return
  fi
  say "  writing   $2"
  run install -D -m "$3" "$1" "$2"
}

# put_once TARGET MODE: a file of the operator's, from standard input, only when there is none.
put_once() {
  if [ -e "$1" ]; then
    say "  kept      $1 (yours)"
    cat >/dev/null
    return
  fi
  say "  writing   $1"
  if [ -n "$dry_run" ]; then cat >/dev/null; return; fi
  install -D -m "$2" /dev/null "$1"
  cat >"$1"
}

check_machine() {
  [ -n "$root" ] || [ -n "$dry_run" ] || [ "$(id -u)" = 0 ] || fail "run it as root, or with --dry-run to see what it does"
  if [ -z "$root" ]; then
    command -v systemctl >/dev/null || fail "systemd is needed"
    command -v apt-get >/dev/null || fail "this is for Debian and Ubuntu; see docs/deploy/ for the steps by hand"
  fi
  case $proxy in '' | nginx | caddy) ;; *) fail "--proxy is nginx or caddy" ;; esac
  case $domain in *[!A-Za-z0-9.-]*) fail "--domain is a name without https:// or path" ;; esac
  [ -z "$google" ] || [ -f "$google" ] || fail "no such file: $google"
  if [ -z "$domain" ]; then
    [ -e "$env_file" ] || fail "--domain NAME is needed the first time"
    domain=$(sed -n 's,^VADEMECUM_PUBLIC_URL=https://,,p' "$env_file" | tail -n 1)
  fi
}

install_packages() {
  local missing=()
  "$python" -c 'import venv, ensurepip' 2>/dev/null || missing+=(python3-venv)
  [ -z "$proxy" ] || command -v "$proxy" >/dev/null || [ -x "/usr/sbin/$proxy" ] || missing+=("$proxy")
  [ "${#missing[@]}" -gt 0 ] || { say "  kept      packages"; return; }
  say "  packages  ${missing[*]}"
  on_machine apt-get update -qq
  on_machine env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"
}

check_python() {
  "$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' ||
    fail "Python 3.11 to 3.13 is needed; name one with --python"
}

make_user() {
  if [ -n "$root" ] || id vademecum >/dev/null 2>&1; then
    say "  kept      user vademecum"
  else
    say "  user      vademecum, without a home or a shell"
    run useradd --system --user-group --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin vademecum
  fi
}

write_configuration() {
  {
    printf 'VADEMECUM_PUBLIC_URL=https://%s\n' "$domain"
    printf '# The proxy in front runs on this machine.\nVADEMECUM_TRUSTED_PROXIES=loopback\n\n'
    cat "$here/vademecum.env"
  } | put_once "$env_file" 0640
  [ -d "$etc/credentials" ] || run install -d -m 0700 "$etc/credentials"
  # Apart from the database, so that neither alone opens anything.
  head -c 32 /dev/urandom | base64 | tr '+/' '-_' | put_once "$etc/credentials/STATE_KEY" 0600
  if [ -n "$google" ]; then put "$google" "$etc/google.json" 0600; fi
  if [ -n "$google" ] || [ -e "$etc/google.json" ]; then
    for unit in vademecum vademecum-backup; do
      put "$here/systemd/google-credentials.conf" "$units/$unit.service.d/google-credentials.conf" 0644
    done
  fi
}

# The release's name tells its content: the same checkout is not installed twice.
release_name() {
  local sum
  sum=$(cd "$source" && find connector oauth store templates pyproject.toml requirements.lock -type f \
    ! -name '*.pyc' -print0 | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum | cut -c 1-12)
  printf '%s-%s' "$(sed -n 's/^version = "\(.*\)"$/\1/p' "$source/pyproject.toml")" "$sum"
}

install_release() {
  local release
  release=$opt/releases/$(release_name)
  if [ -e "$release/.complete" ]; then
    say "  kept      $release"
  else
    say "  release   $release"
    run rm -rf "$release"
    run install -d -m 0755 "$opt" "$opt/releases"
    run "$python" -m venv "$release"
    run "$release/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes \
      -r "$source/requirements.lock"
    run "$release/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation \
      "$source"
    run "$release/bin/vademecum" --version
    run touch "$release/.complete"
  fi
  back_up
  switch_to "$release"
}

# Before new code opens the database: a migration only goes forward.
back_up() {
  [ -z "$root" ] && [ -e "$opt/current" ] || return 0
  # Whoever has turned the timer off makes backups elsewhere.
  if systemctl is-enabled --quiet vademecum-backup.timer 2>/dev/null; then
    say "  backup    before the upgrade"
    run systemctl start vademecum-backup.service || fail "the backup failed, so nothing was changed: journalctl -u vademecum-backup"
  fi
}

# switch_to RELEASE: `current` names it, `previous` the one before, both by one rename.
switch_to() {
  local now
  now=$(readlink "$opt/current" 2>/dev/null || true)
  if [ "$now" = "$1" ]; then
    say "  kept      $opt/current"
    return
  fi
  say "  switching $opt/current to $(basename "$1")"
  if [ -n "$now" ]; then
    run ln -sfn "$now" "$opt/previous.new"
    run mv -T "$opt/previous.new" "$opt/previous"
  fi
  run ln -sfn "$1" "$opt/current.new"
  run mv -T "$opt/current.new" "$opt/current"
}

install_units() {
  local unit first=''
  [ -e "$units/vademecum-backup.timer" ] || first=yes
  for unit in vademecum.service vademecum-backup.service vademecum-backup.timer; do
    put "$here/systemd/$unit" "$units/$unit" 0644
  done
  put "$here/vademecum" "$root/usr/local/bin/vademecum" 0755
  on_machine systemctl daemon-reload
  on_machine systemctl enable --quiet vademecum.service
  # Once: it stays off for those who turn it off.
  if [ -n "$first" ]; then on_machine systemctl enable --quiet --now vademecum-backup.timer; fi
}

install_proxy() {
  local from to
  case $proxy in
    nginx) from=$here/nginx/vademecum.conf to=$root/etc/nginx/conf.d/vademecum.conf ;;
    caddy) from=$here/caddy/Caddyfile to=$root/etc/caddy/Caddyfile ;;
    *) return 0 ;;
  esac
  if [ -e "$to" ] && [ "$proxy" = caddy ] && ! grep -q "$domain" "$to"; then
    # The package brings a page of its own there.
    run mv "$to" "$to.before-vademecum"
  fi
  sed "s/memory\.example\.org/$domain/g" "$from" | put_once "$to" 0644
  if [ "$proxy" = nginx ] && [ ! -e "$root/etc/letsencrypt/live/$domain/fullchain.pem" ]; then
    say "  next      get the certificate as the head of $to says, then: systemctl reload nginx"
  else
    on_machine systemctl reload-or-restart "$proxy"
  fi
}

restart() {
  [ -z "$root" ] || return 0
  say "  starting  vademecum.service, which is ready when it says so"
  run systemctl restart vademecum.service ||
    fail "it does not start: journalctl -u vademecum -n 50; back to the release before: $0 --rollback"
}

# Three releases: the one that runs, the one before, and one in doubt.
remove_old_releases() {
  local release
  [ -d "$opt/releases" ] || return 0
  find "$opt/releases" -mindepth 1 -maxdepth 1 -type d -printf '%T@ %p\n' | sort -rn | tail -n +4 | cut -d ' ' -f 2- |
    while IFS= read -r release; do
      case $release in "$(readlink "$opt/current")" | "$(readlink "$opt/previous" || true)") continue ;; esac
      say "  removing  $release"
      run rm -rf "$release"
    done
}

if [ -n "$rollback" ]; then
  [ -e "$opt/previous" ] || fail "there is no release before this one"
  say "Going back"
  switch_to "$(readlink "$opt/previous")"
  restart
  say "Done. If the database was migrated meanwhile, the older release refuses it: docs/deploy/upgrade.md says what then."
  exit 0
fi

check_machine
say "Vademecum at https://$domain"
install_packages
[ -n "$dry_run" ] || check_python
make_user
write_configuration
install_release
install_units
install_proxy
restart
remove_old_releases
if [ -n "$dry_run" ]; then say "Nothing was changed."; else say "Done. Next: vademecum owner setup-link"; fi
