"use strict";
// What a report does beyond showing: charts that follow the choice of a judge or perturbation and
// show numbers on hovering, tables that can be sorted, filtered and copied. All texts are data.
(() => {
  const chosen = { judge: "", perturbation: "" };
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const make = (tag, properties = {}) => Object.assign(document.createElement(tag), properties);

  // A judge is named with its prompt, dataset or wave where these differ.
  const isJudge = (who) => who === chosen.judge || who.startsWith(`${chosen.judge} / `);
  const isWanted = ({ who, judge, perturbation }) =>
    (!chosen.judge || !(who || judge) || isJudge(who || judge)) &&
    (!chosen.perturbation || !perturbation || perturbation === chosen.perturbation);

  // Charts
  const look = document.getElementById("look");
  const config = look && JSON.parse(look.textContent);
  const panels = look
    ? all(".panel").map((box) => ({ box, spec: JSON.parse(box.querySelector("script").textContent) }))
    : [];
  if (config) config.font = getComputedStyle(document.body).fontFamily;

  const narrowed = (part, about) => {
    const copy = { ...part };
    const values = part.data && part.data.values;
    if (values) copy.data = { values: values.filter((row) => isWanted({ ...row, judge: "", ...(about.judge && { who: "" }) })) };
    if (part.layer) copy.layer = part.layer.map((each) => narrowed(each, about));
    return copy;
  };

  const draw = (panel) => {
    const about = panel.spec.usermeta || {};
    const spec = narrowed(panel.spec, about);
    panel.box.hidden = !isWanted(about) || !spec.data.values.length;
    if (panel.box.hidden) return;
    panel.view?.finalize();
    panel.live ??= make("div");
    panel.live.remove();
    panel.live = make("div");
    panel.box.append(panel.live);
    const { spec: compiled } = vegaRuntime.compile(spec, { config });
    const view = new vegaRuntime.View(vegaRuntime.parse(compiled, null, { ast: true }), {
      renderer: "svg",
      expr: vegaRuntime.expressionInterpreter,
      container: panel.live,
      tooltip: showTip,
    });
    Object.assign(panel, { view, width: panel.box.clientWidth });
    view.runAsync().then(() => {
      if (panel.view !== view) return;
      if (typeof panel.spec.width === "number") fit(panel, view);
      const picture = panel.live.querySelector("svg");
      for (const mark of all("[role]", picture)) for (const name of ["role", "aria-roledescription"]) mark.removeAttribute(name);
      picture.setAttribute("role", "img");
      picture.setAttribute("aria-label", panel.spec.description);
      panel.box.querySelector(":scope > svg")?.remove();
    });
  };

  // The plot takes what names and numbers leave of the panel's width.
  const fit = (panel, view) => {
    const beside = Number(panel.live.querySelector("svg").getAttribute("width")) - panel.spec.width;
    const room = Math.min(panel.box.clientWidth, 560) - beside;
    view.width(Math.max(panel.spec.width * 0.55, Math.min(panel.spec.width * 1.6, room))).run();
  };

  const tip = document.getElementById("tip");
  const showTip = (_, event, __, value) => {
    tip.hidden = !value;
    if (!value) return;
    tip.textContent = value;
    const { clientX: x, clientY: y } = event.touches ? event.touches[0] : event;
    const { width, height } = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(8, Math.min(x + 14, innerWidth - width - 8))}px`;
    tip.style.top = `${y + 18 + height > innerHeight ? Math.max(8, y - height - 12) : y + 18}px`;
  };

  const byBox = new Map(panels.map((panel) => [panel.box, panel]));
  const seen = new IntersectionObserver(
    (entries) => {
      for (const { target, isIntersecting } of entries) {
        const panel = byBox.get(target);
        if (isIntersecting && panel && !panel.view) draw(panel);
      }
    },
    { rootMargin: "600px" },
  );
  for (const { box } of panels) seen.observe(box);

  // Rows
  const rowsOf = (table) => all(":scope > tbody > tr:not(.rests)", table);
  const restOf = (row) => (row.nextElementSibling?.classList.contains("rests") ? row.nextElementSibling : null);
  const judgesOf = (row) => all(".who", row).map((each) => each.textContent);
  const ofJudge = (names) => !chosen.judge || !names.length || names.some(isJudge);

  const choose = () => {
    for (const item of all(".advice li, details.examples")) {
      const named = item.matches("details") ? item.querySelector("summary") : item;
      item.hidden = !ofJudge(judgesOf(named)) || !isWanted({ perturbation: item.dataset.perturbation });
    }
    for (const part of all("tbody[data-perturbation], details[data-perturbation]:not(.examples)"))
      part.hidden = !isWanted({ perturbation: part.dataset.perturbation });
    for (const table of all(".wide > table")) showRows(table);
    for (const panel of panels) if (panel.view || chosen.judge || chosen.perturbation || panel.box.hidden) draw(panel);
    const parts = Object.values(chosen).filter(Boolean);
    const status = document.querySelector(".choose [role=status]");
    if (status) status.textContent = parts.length ? `Shown: ${parts.join(", ")}` : "";
  };

  const showRows = (table) => {
    const column = table.dataset.perturbations;
    const words = (table.words || "").toLowerCase();
    for (const row of rowsOf(table)) {
      if (row.querySelector(".group")) continue;
      const perturbation = column === undefined ? "" : row.cells[column]?.textContent.trim();
      const rest = restOf(row);
      const text = words && (row.textContent + (rest?.textContent || "")).toLowerCase();
      row.hidden = !ofJudge(judgesOf(row)) || !isWanted({ perturbation: perturbation === "none" ? "" : perturbation }) || (words && !text.includes(words));
      if (rest) rest.hidden = row.hidden;
    }
    let any = false;
    for (const body of table.tBodies) {
      const shown = [...body.rows].some((row) => !row.hidden && !row.matches(".rests") && !row.querySelector(".group"));
      any ||= shown && !body.hidden;
      for (const row of body.rows) if (row.querySelector(".group")) row.hidden = !shown;
    }
    table.none.hidden = any || !rowsOf(table).length;
  };

  for (const select of all("[data-choice]"))
    select.addEventListener("change", () => {
      chosen[select.dataset.choice] = select.value;
      choose();
    });
  for (const bar of all(".choose")) bar.hidden = false;

  // Sorting
  const valueOf = (row, at) => {
    const text = (row.cells[at]?.firstChild?.textContent || row.cells[at]?.textContent || "").trim();
    const plain = text.replace(/\u2212/g, "-").replace(/[\u202f\u00a0](?=\d)/g, "").replace(/^<\s*/, "");
    const found = plain.match(/^[+-]?(?:\d+\.?\d*|\.\d+)/);
    return found ? [0, Number(found[0]), text] : [text && text !== "none" && !text.startsWith("not ") ? 1 : 2, 0, text];
  };
  const compared = (a, b) => a[1] - b[1] || a[2].localeCompare(b[2], undefined, { numeric: true });

  const sort = (table, at, heading) => {
    const down = heading.getAttribute("aria-sort") === "ascending";
    for (const each of table.tHead.rows[0].cells) each.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", down ? "descending" : "ascending");
    for (const body of table.tBodies) {
      const rows = [...body.rows].filter((row) => !row.matches(".rests, .mean") && !row.querySelector(".group"));
      const keyed = rows.map((row) => ({ row, rest: restOf(row), key: valueOf(row, at) }));
      // Rows without a value come last in both directions.
      keyed.sort((a, b) => a.key[0] - b.key[0] || (down ? -1 : 1) * compared(a.key, b.key));
      for (const { row, rest } of keyed) body.append(row, ...(rest ? [rest] : []));
      body.append(...body.querySelectorAll(":scope > .mean"));
    }
  };

  // Copying: as voirdire exports CSV, no cell begins as a formula does. A cell that holds several
  // numbers, such as an interval, becomes as many columns.
  const AMOUNT = "[+-]?(?:\\d+(?:\\.\\d+)?|\\.\\d+)";
  const ENDS = `\\[(${AMOUNT}), (${AMOUNT})\\]`;
  const IS_AMOUNT = new RegExp(`^<? ?${AMOUNT}$`);
  const INTERVAL = new RegExp(`^${ENDS}(?: (.+))?$`);
  const ESTIMATE = new RegExp(`^(<? ?${AMOUNT})( sd)?(?: ${ENDS})?$`);
  const NAMED = new RegExp(`^(?:([A-Za-z][A-Za-z ]{0,24}) )?(<? ?${AMOUNT})(?: ([A-Za-z][A-Za-z ]{0,24}))?(?: ${ENDS})?$`);
  const ascii = (text) => text.replace(/\u2212/g, "-").replace(/(\d)\u202f(?=\d{3})/g, "$1").replace(/\s+/g, " ").trim();
  const amount = (text) => text.replace(/\s/g, "").replace(/^(<?[+-]?)\./, (_, sign) => `${sign}0.`);
  const cell = (text) => {
    const plain = ascii(text);
    const safe = IS_AMOUNT.test(plain) ? amount(plain) : /^[=+\-@\t\r']/.test(plain) ? `'${plain}` : plain;
    return /[",\n]/.test(safe) ? `"${safe.replace(/"/g, '""')}"` : safe;
  };
  const textOf = (td) => [...td.childNodes].filter((n) => !n.classList?.contains("to-examples")).map((n) => n.textContent.trim()).filter(Boolean).join(" ");
  const ends = (name, low, high) => (low === undefined ? [] : [[`${name} low`, low], [`${name} high`, high]]);
  const ofNote = (piece) => {
    const [, low, high, rest] = piece.match(INTERVAL) || [];
    if (low !== undefined) return [...ends("", low, high), ...(rest ? [[", note", rest]] : [])];
    const [, before, value, after, ...both] = piece.match(NAMED) || [];
    if (value === undefined || (before && after)) return [[", note", piece]];
    const name = `, ${before || after || "share"}`;
    return [[name, value], ...ends(name, ...both)];
  };
  const notesOf = (element) => ascii(element.textContent).split("; ").flatMap(ofNote).filter(([, text]) => text);
  // What a cell says, as pairs of the rest of a column's name and a text.
  const partsOf = (td) => {
    const notes = all(":scope > small", td);
    if (notes.length > 1) return [["", textOf(td)]];
    const main = ascii([...td.childNodes].filter((n) => !notes.includes(n) && !n.classList?.contains("to-examples")).map((n) => n.textContent.trim()).filter(Boolean).join(" "));
    // A name may be a number.
    if (td.matches("th")) return [["", main], ...notes.map((each) => [", note", each.textContent])];
    const [, value, unit, ...both] = main.match(ESTIMATE) || [];
    const [, low, high, rest] = main.match(INTERVAL) || [];
    const said = low !== undefined && !rest ? ends("", low, high)
      : value !== undefined ? [["", value], ...ends("", ...both), ...(unit ? [[", unit", unit]] : [])]
      : [["", main]];
    return [...said, ...(notes.length ? notesOf(notes[0]) : [])];
  };
  // A long note of the finding, which is the second cell, stands below the row.
  const cellsOf = (row) => {
    const parts = [...row.cells].map(partsOf);
    const rest = restOf(row);
    if (rest?.matches(".note")) parts[1].push(...notesOf(rest));
    return parts;
  };
  const csv = (table) => {
    const grouped = !!table.querySelector(".group");
    const lines = [];
    for (const body of table.tBodies) {
      if (body.hidden) continue;
      for (const row of body.rows) {
        if (row.hidden || row.matches(".rests") || row.querySelector(".group")) continue;
        lines.push([...(grouped ? [[["", body.dataset.perturbation || ""]]] : []), ...cellsOf(row)]);
      }
    }
    const headings = [...(grouped ? ["Perturbation"] : []), ...[...table.tHead.rows[0].cells].map(textOf)];
    const kinds = headings.map((_, at) => {
      const parts = lines.flatMap((line) => line[at] || []);
      const found = [...new Set(parts.filter(([kind, text]) => kind || text).map(([kind]) => kind))];
      return found.length ? found : [""];
    });
    const texts = (line) => kinds.flatMap((own, at) => own.map((kind) => (line[at] || []).filter((part) => part[0] === kind).map((part) => part[1]).join("; ")));
    const names = kinds.flatMap((own, at) => own.map((kind) => headings[at] + kind));
    return [names, ...lines.map(texts)].map((line) => line.map(cell).join(",")).join("\r\n") + "\r\n";
  };
  const copy = async (text) => {
    if (navigator.clipboard) return navigator.clipboard.writeText(text);
    const area = make("textarea", { value: text });
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    if (!done) throw new Error("the browser does not allow it");
  };

  for (const table of all(".wide > table")) {
    const name = table.closest("details")?.querySelector("summary").textContent.trim() || "this table";
    const tools = make("div", { className: "tools" });
    const status = make("span");
    status.setAttribute("role", "status");
    if (rowsOf(table).length > 8) {
      const search = make("input", { type: "search", placeholder: "Filter rows" });
      search.setAttribute("aria-label", `Filter the rows of ${name}`);
      search.addEventListener("input", () => {
        table.words = search.value;
        showRows(table);
      });
      tools.append(search);
    }
    const button = make("button", { type: "button", textContent: "Copy as CSV" });
    button.addEventListener("click", async () => {
      try {
        await copy(csv(table));
        status.textContent = "Copied";
      } catch (error) {
        status.textContent = `Not copied: ${error.message}`;
      }
    });
    tools.prepend(status);
    tools.append(button);
    table.parentElement.before(tools);
    table.none = make("p", { className: "none", hidden: true, textContent: "No rows match." });
    table.none.setAttribute("role", "status");
    table.parentElement.after(table.none);
    [...table.tHead.rows[0].cells].forEach((heading, at) => {
      const sorter = make("button", { type: "button" });
      sorter.append(...heading.childNodes);
      heading.append(sorter);
      sorter.addEventListener("click", () => sort(table, at, heading));
    });
  }

  // A link to an example opens what holds it.
  const reveal = () => {
    // The heading of a fold says whose examples these are.
    const target = location.hash && document.getElementById(location.hash.slice(1));
    const folded = target && target.closest("details");
    if (folded && !folded.open) {
      folded.open = true;
      target.scrollIntoView();
    }
  };
  addEventListener("hashchange", reveal);
  for (const link of all('a[href^="#examples-"]')) link.addEventListener("click", () => setTimeout(reveal));
  reveal();

  // Wide panels get wider, and a chosen part is what is printed.
  let pause;
  addEventListener("resize", () => {
    clearTimeout(pause);
    pause = setTimeout(() => {
      for (const panel of panels) if (panel.view && panel.box.clientWidth !== panel.width) draw(panel);
    }, 150);
  });
})();
