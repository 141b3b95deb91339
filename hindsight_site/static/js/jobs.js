// A job at work: the page is asked for again and what changed is put in its place. Without this script the
// page reloads itself (the <noscript> in templates/jobs/job.html).
async function lookAgain() {
  const shown = document.querySelector("[data-job]");
  if (!shown?.hasAttribute("data-open")) return;
  try {
    const answer = await fetch(location.href);
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = page.querySelector("[data-job]");
    // While a button in it has the focus it stays as it is, unless there is nothing left to press.
    const held = shown.contains(document.activeElement);
    if (fresh && (!held || !fresh.hasAttribute("data-open"))) shown.replaceWith(fresh);
  } catch { /* away for a moment: the next look may find it */ }
  setTimeout(lookAgain, 2000);
}
setTimeout(lookAgain, 2000);
