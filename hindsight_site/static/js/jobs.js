// A job at work, or an agent that is awaited: the page is asked for again and what changed is put in its place.
// Without this script the page reloads itself, or offers to (its <noscript>).
async function lookAgain() {
  if (!document.querySelector("[data-job][data-open]")) return;
  try {
    const answer = await fetch(location.href);
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const shown of document.querySelectorAll("[data-job]")) {
      const fresh = page.querySelector(`[data-job="${shown.dataset.job}"]`);
      // While a button in it has the focus it stays as it is, unless there is nothing left to press.
      const held = shown.contains(document.activeElement);
      if (fresh && (!held || !fresh.hasAttribute("data-open"))) shown.replaceWith(fresh);
    }
  } catch { /* away for a moment: the next look may find it */ }
  setTimeout(lookAgain, 2000);
}
setTimeout(lookAgain, 2000);
