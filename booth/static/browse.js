"use strict";
// Keys, and filters that apply at once. Without it the pages work too, with a button.
addEventListener("DOMContentLoaded", () => {
  const find = document.getElementById("find");
  const keys = document.getElementById("keys");
  const help = document.getElementById("help");
  const filters = document.getElementById("filters");
  const rows = [...document.querySelectorAll(".rows:not(.others) a")];
  const open = (id) => {
    const link = document.getElementById(id);
    if (link) link.click();
    return Boolean(link);
  };
  const move = (step) => {
    const at = rows.indexOf(document.activeElement);
    const next = at < 0 ? (step > 0 ? 0 : rows.length - 1) : at + step;
    const row = rows[Math.max(0, Math.min(rows.length - 1, next))];
    if (row) row.focus();
    return Boolean(row);
  };
  const search = () => {
    if (find) {
      find.focus();
      find.select();
      return true;
    }
    const back = document.getElementById("back");
    if (!back) return false;
    location.assign(`${back.href}#find`);
    return true;
  };
  const actions = {
    j: () => (rows.length ? move(1) : open("after")),
    k: () => (rows.length ? move(-1) : open("before")),
    ArrowDown: () => rows.length > 0 && move(1),
    ArrowUp: () => rows.length > 0 && move(-1),
    ArrowRight: () => open("after"),
    ArrowLeft: () => open("before"),
    u: () => open("back"),
    Escape: () => open("back"),
    "/": search,
    "?": () => {
      keys.showModal();
      return true;
    },
  };

  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || keys.open) return;
    const at = document.activeElement;
    if (at && at.matches("input[type=search], select, textarea")) {
      if (event.key === "Escape") at.blur();
      return;
    }
    // A text that scrolls by itself keeps its arrows.
    if (event.key.startsWith("Arrow") && at && at.closest(".said, table")) return;
    const act = Object.hasOwn(actions, event.key) && actions[event.key];
    if (act && act()) event.preventDefault();
  });

  if (help) {
    help.hidden = false;
    help.addEventListener("click", actions["?"]);
  }
  if (find && location.hash === "#find") search();
  if (filters) {
    // An empty field would make every link longer.
    const submit = () => {
      for (const field of filters.elements) field.disabled = field.name !== "" && field.value === "";
      filters.requestSubmit();
    };
    filters.addEventListener("change", (event) => {
      if (event.target !== find) submit();
    });
    filters.addEventListener("submit", () => {
      for (const field of filters.elements) field.disabled = field.name !== "" && field.value === "";
    });
    // The browser shows this page again with what was disabled, or chosen, when it was left.
    addEventListener("pageshow", (event) => {
      if (event.persisted) location.reload();
    });
  }
  // Long texts scroll by themselves, so keys must reach them.
  for (const wide of document.querySelectorAll(".said")) {
    if (wide.scrollHeight > wide.clientHeight || wide.scrollWidth > wide.clientWidth) wide.tabIndex = 0;
  }
});
