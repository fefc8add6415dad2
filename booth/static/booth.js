"use strict";
// Keys, the time that the page was hidden, and one submission per page. Without it the page works too.
// It is there before the page is seen, so that no key is lost.
(() => {
  const ballot = () => document.getElementById("ballot");
  const go = (id) => {
    const link = document.getElementById(id);
    if (link) link.click();
    return link !== null;
  };

  // A page out of the browser's memory shows a ballot that has been passed.
  addEventListener("pageshow", (event) => {
    if (event.persisted) location.reload();
  });

  addEventListener("keydown", (event) => {
    if (event.repeat || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    const inCode = document.activeElement && document.activeElement.closest("pre, table");
    if (event.key === "Backspace" || (event.key === "ArrowLeft" && !inCode)) {
      if (go("back")) event.preventDefault();
      return;
    }
    if (event.key === "ArrowRight" && !inCode) {
      if (go("forward")) event.preventDefault();
      return;
    }
    const form = ballot();
    if (!form) return;
    const key = event.key.toLowerCase();
    for (const button of form.querySelectorAll("button")) {
      if (button.dataset.keys.split(" ").includes(key)) {
        event.preventDefault();
        form.requestSubmit(button);
        return;
      }
    }
  });

  let hidden = 0;
  let since = document.hidden ? performance.now() : null;
  const count = () => {
    if (since !== null) hidden += performance.now() - since;
    since = document.hidden ? performance.now() : null;
  };
  document.addEventListener("visibilitychange", count);

  addEventListener("DOMContentLoaded", () => {
    // Wide code and tables scroll by themselves, so keys must reach them.
    for (const wide of document.querySelectorAll("pre, table")) {
      if (wide.scrollWidth > wide.clientWidth) wide.tabIndex = 0;
    }
    const form = ballot();
    if (!form) return;
    let sent = false;
    form.addEventListener("submit", (event) => {
      if (sent) {
        event.preventDefault();
        return;
      }
      sent = true;
      count();
      form.elements.away.value = String(Math.round(hidden));
      if (event.submitter) event.submitter.classList.add("sent");
      form.setAttribute("aria-busy", "true");
    });
  });
})();
