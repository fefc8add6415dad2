"use strict";
// Keys, the time that the page is seen, and one submission per page. Without it the page works too.
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

  let seen = 0;
  let since = document.hidden ? null : performance.now();
  const count = (left = false) => {
    if (since !== null) seen += performance.now() - since;
    since = left || document.hidden ? null : performance.now();
    return Math.floor(seen);
  };

  // A page that is hidden may never come back, and one that is left says so once; the booth keeps the
  // longest time of each page. It is reported after a choice too, which may not have arrived.
  let reported = 0;
  const tell = (left = false) => {
    const time = count(left);
    const form = ballot();
    if (!form || time === reported) return;
    reported = time;
    const body = new URLSearchParams({ nonce: form.elements.nonce.value, seen: String(time) });
    navigator.sendBeacon(form.dataset.left, body);
  };
  addEventListener("pagehide", () => tell(true));
  document.addEventListener("visibilitychange", () => (document.hidden ? tell() : count()));
  // A browser that quits says nothing, so a page speaks after 4 s, 8 s, 16 s: half of it or more is known.
  let next = 4000;
  setInterval(() => {
    if (count() < next) return;
    tell();
    next *= 2;
  }, 1000);

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
      form.elements.seen.value = String(count());
      if (event.submitter) event.submitter.classList.add("sent");
      form.setAttribute("aria-busy", "true");
    });
  });
})();
