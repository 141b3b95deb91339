// Says on the page why a passkey could not be used; allauth's own script only writes to the console.
"use strict";

const WORDS = {
  NotAllowedError: "The passkey was not used: it was cancelled, took too long, or there is none for this site.",
  InvalidStateError: "This device or key is registered already.",
  SecurityError: "Passkeys need https, or the name localhost instead of a number in the address.",
};

document.addEventListener("allauth.error", (event) => {
  const notice = document.querySelector("[data-passkey-error]");
  if (!notice) return;
  event.preventDefault();
  notice.querySelector("p").textContent =
    WORDS[event.detail.exception?.name] ?? "This browser could not use a passkey here.";
  notice.hidden = false;
});
