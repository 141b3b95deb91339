// Keys for the review, the switch that turns them off, and the change shown while editing.
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

// --- The change shown while editing: common words by the longest common subsequence ---------------

const editor = document.getElementById("content");
const change = document.getElementById("change");

function words(text) {
  return text.match(/[\u3400-\u4dbf\u4e00-\u9fff]|[^\s\u3400-\u4dbf\u4e00-\u9fff]+|\s+/gu) ?? [];
}

function pieces(before, after) {
  const common = Array.from({ length: before.length + 1 }, () => new Uint16Array(after.length + 1));
  for (let i = before.length - 1; i >= 0; i--) {
    for (let j = after.length - 1; j >= 0; j--) {
      const same = before[i] === after[j];
      common[i][j] = same ? common[i + 1][j + 1] + 1 : Math.max(common[i + 1][j], common[i][j + 1]);
    }
  }
  const found = [];
  for (let i = 0, j = 0; i < before.length || j < after.length;) {
    if (i < before.length && j < after.length && before[i] === after[j]) found.push(["span", before[i++], j++]);
    else if (i < before.length && (j === after.length || common[i + 1][j] >= common[i][j + 1])) found.push(["del", before[i++]]);
    else found.push(["ins", after[j++]]);
  }
  return found;
}

function showChange(shown) {
  const before = words(shown.dataset.before);
  const after = words(editor.value);
  change.hidden = shown.dataset.before === editor.value || before.length * after.length > 1e6;
  if (change.hidden) return;
  shown.replaceChildren(...pieces(before, after).map(([tag, text]) => {
    const element = document.createElement(tag);
    element.textContent = text;
    return element;
  }));
}

if (editor && change) {
  const shown = change.querySelector("[data-before]");
  editor.addEventListener("input", () => showChange(shown));
  showChange(shown);
}
