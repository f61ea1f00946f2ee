"use strict";
// Adds sorting and a filter to the table of sources. Without it the page only lacks these two.
(() => {
  const table = document.getElementById("sources-table");
  if (!table) return;
  const body = table.tBodies[0];
  const heads = Array.from(table.tHead.rows[0].cells);
  const names = new Intl.Collator(undefined, { numeric: true });

  const key = (row, column) => {
    const cell = row.cells[column];
    if (column === 0) return cell.textContent;
    return cell.dataset.key === undefined ? null : Number(cell.dataset.key);
  };

  const sort = (column) => {
    const head = heads[column];
    const before = head.getAttribute("aria-sort");
    const opposite = { ascending: "descending", descending: "ascending" };
    const order = before ? opposite[before] : head.dataset.first || "ascending";
    const sign = order === "ascending" ? 1 : -1;
    const rows = Array.from(body.rows, (row, place) => ({ row, place, key: key(row, column) }));
    rows.sort((a, b) => {
      // Rows without a value stay at the end whichever way the rest is sorted.
      if (a.key === null || b.key === null) return (a.key === null) - (b.key === null) || a.place - b.place;
      const difference = column === 0 ? names.compare(a.key, b.key) : a.key - b.key;
      return sign * difference || a.place - b.place;
    });
    // Moved outside the page, because each row moved inside it would cost a look at all the others.
    body.remove();
    body.append(...rows.map(({ row }) => row));
    table.append(body);
    heads.forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", order);
  };

  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    button.addEventListener("click", () => sort(column));
    head.append(button);
  });

  const filter = document.getElementById("filter");
  if (filter) {
    filter.hidden = false;
    filter.querySelector("input").addEventListener("input", (event) => {
      const wanted = event.target.value.toLowerCase();
      for (const row of body.rows) row.hidden = !row.cells[0].textContent.toLowerCase().includes(wanted);
    });
  }
})();
