// Keys for the review, and the switch that turns them off.
// Every key presses a button or follows a link that is on the page anyway: see aria-keyshortcuts.
"use strict";

const SWITCH = "hindsight.review.keys"; // "off" on this device; nothing else is kept in the browser
const dialog = document.getElementById("keys");
const toggle = document.getElementById("keys-switch");
let busy = false; // a decision is on its way: the next key must not hit the next memory

function keysAreOn() {
  try {
    return localStorage.getItem(SWITCH) !== "off";
  } catch {
    return true; // storage is closed to us: the keys work, the switch lasts for this page
  }
}

function setKeys(on) {
  document.documentElement.dataset.keys = on ? "on" : "off";
  toggle.checked = on;
}

function target(key) {
  const name = key.length === 1 ? key.toUpperCase() : key;
  for (const element of document.querySelectorAll("[aria-keyshortcuts]")) {
    if (element.getAttribute("aria-keyshortcuts").split(" ").includes(name)) return element;
  }
  return name === "O" ? document.querySelector(".evidence a") : null;
}

function isTyping(element) {
  return element.closest("input:not([type=checkbox]), textarea, select, [contenteditable]") !== null;
}

document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.repeat || event.isComposing) return;
  if (event.ctrlKey || event.metaKey || event.altKey || busy || dialog.open) return;
  if (event.key !== "?" && document.documentElement.dataset.keys === "off") return;
  const active = document.activeElement ?? document.body;
  if (isTyping(active) && event.key !== "Escape") return;
  // Enter and the arrows belong to whatever holds the focus
  if (event.key === "Enter" && active.matches("a, button, summary")) return;
  const element = target(event.key);
  if (!element) return;
  event.preventDefault();
  element.click();
});

document.addEventListener("submit", (event) => {
  if (event.target.method === "post") busy = true;
});
addEventListener("pageshow", () => { busy = false; });

const opener = document.getElementById("keys-button");
opener.hidden = false;
opener.addEventListener("click", () => dialog.showModal());
toggle.addEventListener("change", () => {
  setKeys(toggle.checked);
  try {
    localStorage.setItem(SWITCH, toggle.checked ? "on" : "off");
  } catch { /* lasts for this page */ }
});
setKeys(keysAreOn());
