// Makes pages handier: they work without it. Nothing that it reads ever becomes markup.
"use strict";

const address = new URL(location.href);

function keep(name, value) {
  if (value) address.searchParams.set(name, value);
  else address.searchParams.delete(name);
  history.replaceState(null, "", address);
}

// Sorting: by the numbers in cells if they begin with one, else by their words; what says nothing comes last.
function valueOf(row, column) {
  const text = row.cells[column].textContent.trim();
  if (!text || text.startsWith("–")) return null;
  if (/^\d{4}-\d{2}-\d{2}/.test(text)) return text;
  const number = parseFloat(text.replace(/,/g, ""));
  return Number.isNaN(number) ? text.toLowerCase() : number;
}

function compared(one, other) {
  if (typeof one === typeof other) return one < other ? -1 : one > other ? 1 : 0;
  return typeof one === "number" ? -1 : 1;
}

function sort(table, header, order) {
  const column = header.cellIndex;
  const sign = order === "desc" ? -1 : 1;
  const rows = [...table.tBodies[0].rows].map((row) => ({ row, value: valueOf(row, column) }));
  rows.sort((one, other) => {
    if (one.value === null || other.value === null) return (one.value === null) - (other.value === null);
    return sign * compared(one.value, other.value);
  });
  table.tBodies[0].append(...rows.map(({ row }) => row));
  for (const each of header.parentElement.cells) each.removeAttribute("aria-sort");
  header.setAttribute("aria-sort", order === "desc" ? "descending" : "ascending");
}

function sortable(table) {
  const buttons = [...table.tHead.querySelectorAll("button")];
  for (const button of buttons) {
    const header = button.closest("th");
    button.addEventListener("click", () => {
      const first = button.dataset.first || "asc";
      const now = { ascending: "asc", descending: "desc" }[header.getAttribute("aria-sort")];
      const order = !now ? first : now === "asc" ? "desc" : "asc";
      if (!button.dataset.sort) return sort(table, header, order);
      keep("sort", button.dataset.sort);
      keep("order", order);
      sortAsAsked();
    });
  }
}

function sortAsAsked() {
  const order = address.searchParams.get("order") === "desc" ? "desc" : "asc";
  for (const button of document.querySelectorAll("table[data-kept] button[data-sort]")) {
    if (button.dataset.sort === address.searchParams.get("sort")) {
      sort(button.closest("table"), button.closest("th"), order);
    }
  }
}

// Filters: rows say by data attributes what they are.
function filter(form) {
  const wanted = [...form.querySelectorAll("select")].filter((select) => select.value);
  let found = 0;
  for (const board of document.querySelectorAll(".board")) {
    let shown = 0;
    for (const row of board.querySelectorAll("tbody tr")) {
      row.hidden = !wanted.every((select) => row.dataset[select.name] === select.value);
      if (!row.hidden) shown += 1;
    }
    board.hidden = !shown;
    found += shown;
  }
  form.querySelector("[data-found]").textContent = wanted.length ? `${found} shown` : "";
}

for (const form of document.querySelectorAll("[data-filters]")) {
  for (const select of form.querySelectorAll("select")) {
    const asked = address.searchParams.get(select.name);
    if (asked !== null) select.value = asked;
    if (select.selectedIndex < 0) select.value = "";
    select.addEventListener("change", () => {
      keep(select.name, select.value);
      filter(form);
    });
  }
  filter(form);
}

for (const table of document.querySelectorAll("table[data-sortable]")) sortable(table);
if (address.searchParams.has("sort")) sortAsAsked();

// Finding: rows whose words have all that was typed.
for (const input of document.querySelectorAll("[data-search]")) {
  const table = document.querySelector(input.dataset.search);
  const told = input.form.querySelector("[data-found]");
  input.form.addEventListener("submit", (event) => event.preventDefault());
  input.addEventListener("input", () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    let found = 0;
    for (const row of table.tBodies[0].rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
      if (!row.hidden) found += 1;
    }
    told.textContent = words.length ? `${found} shown` : "";
  });
}

// Comparing takes two.
for (const form of document.querySelectorAll("[data-compare]")) {
  const button = form.querySelector("p > button");
  const chosen = () => new Set([...form.querySelectorAll(":checked")].map((box) => box.value)).size;
  const look = () => { if (button) button.disabled = chosen() < 2; };
  form.addEventListener("change", look);
  look();
}

// Runs at work: their numbers every two seconds, and the whole page once they have ended.
async function follow(element) {
  const bar = element.querySelector("progress");
  const told = element.querySelector("[data-told]");
  for (;;) {
    await new Promise((go) => setTimeout(go, 2000));
    if (document.hidden) continue;
    let now;
    try {
      const reply = await fetch(element.dataset.progress);
      if (!reply.ok) return;
      now = await reply.json();
    } catch {
      continue;
    }
    bar.max = now.planned;
    bar.value = now.answered;
    const failed = now.failed ? `, ${now.failed} without an answer yet` : "";
    told.textContent = `${now.answered} of ${now.planned} answered, ${now.judged} judged${failed}`;
    if (!now.at_work) return void location.reload();
  }
}

for (const element of document.querySelectorAll("[data-progress]")) follow(element);
