// What scripts add to every page. Everything works without them.
"use strict";

// Code blocks get a copy button.
for (const button of document.querySelectorAll("[data-copy]")) {
  const words = button.querySelector("span");
  button.hidden = false;
  button.addEventListener("click", async () => {
    const code = button.parentElement.querySelector("code");
    try {
      await navigator.clipboard.writeText(code.textContent);
      words.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(code); // no clipboard outside https: leave it selected
      words.textContent = "Selected";
    }
    setTimeout(() => { words.textContent = "Copy"; }, 2000);
  });
}

// Menus close on Escape and on a click elsewhere.
for (const menu of document.querySelectorAll("details[data-menu]")) {
  document.addEventListener("click", (event) => {
    if (!menu.contains(event.target)) menu.open = false;
  });
  menu.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && menu.open) {
      menu.open = false;
      menu.querySelector("summary").focus();
    }
  });
}

// Filters apply when a choice is made; the button stays for typing and for no script.
for (const form of document.querySelectorAll("form[data-auto]")) {
  form.addEventListener("change", (event) => {
    if (event.target.matches("select, [type=checkbox]")) form.requestSubmit();
  });
}

// A form is sent once.
document.addEventListener("submit", (event) => {
  if (event.target.method !== "post") return;
  if (event.target.dataset.sent) event.preventDefault();
  event.target.dataset.sent = "yes";
});
addEventListener("pageshow", () => {
  for (const form of document.querySelectorAll("form[data-sent]")) delete form.dataset.sent;
});
