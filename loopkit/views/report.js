"use strict";

// plotly is some megabytes of script: it lies in the page as text and runs once the page can be read and used. Each
// plot is a task of its own, so that whatever somebody does meanwhile has its turn, in a place that is kept for it.
const plots = [...document.querySelectorAll(".plot")].map(plot => [plot, JSON.parse(plot.nextElementSibling.textContent)]);
for (const [plot, {layout}] of plots) plot.style.minHeight = `${layout.height}px`;
requestAnimationFrame(() => setTimeout(() => {
  const script = document.createElement("script");
  script.textContent = document.getElementById("plotly").textContent;
  document.body.append(script);
  for (const [plot, figure] of plots) setTimeout(draw, 0, plot, figure);
}));

function draw(plot, {data, layout}) {
  Plotly.newPlot(plot, data, layout, {responsive: true, displayModeBar: false});
  addEventListener("beforeprint", () => Plotly.relayout(plot, {width: 660}));
  addEventListener("afterprint", () => Plotly.relayout(plot, {width: null, autosize: true}));
}

// The trials become a table when somebody asks for them, and a page of it at a time. What they say was written by
// models: it enters the document as text, never as markup.
const PER_PAGE = 100;

const find = id => document.getElementById(id);
const make = (tag, text, look = "") => Object.assign(document.createElement(tag), {textContent: text, className: look});
const count = number => number.toLocaleString("en");

function showTrials() {
  const {rows, columns} = JSON.parse(find("trials-data").textContent);
  const cell = (column, row) => column.texts[column.at ? column.at[row] : row];
  const every = [...Array(rows).keys()];
  let chosen = every, page = 0, lines;

  const line = document.createElement("tr");
  line.append(...columns.map(column => make("th", column.title, column.look)));
  find("trials").querySelector("thead").append(line);

  const choices = columns.filter(column => column.choose).map(column => {
    const label = make("label", `${column.title} `), select = document.createElement("select");
    select.append(new Option("any", ""), ...column.texts.map(text => new Option(text)));
    select.addEventListener("input", choose);
    label.append(select);
    find("choices").append(label);
    return [column, select];
  });
  find("filter").addEventListener("input", choose);
  find("back").addEventListener("click", () => turn(page - 1));
  find("on").addEventListener("click", () => turn(page + 1));

  function choose() {
    const words = find("filter").value.toLowerCase().split(/\s+/).filter(word => word);
    const set = choices.filter(([, select]) => select.selectedIndex > 0);
    if (words.length) lines ??= every.map(row => columns.map(column => cell(column, row)).join(" ").toLowerCase());
    chosen = every.filter(row =>
      set.every(([column, select]) => cell(column, row) === select.value)
      && words.every(word => lines[row].includes(word)));
    find("count").value = `${count(chosen.length)} of ${count(rows)}`;
    turn(0);
  }

  function turn(to) {
    page = to;
    const first = page * PER_PAGE, last = Math.min(first + PER_PAGE, chosen.length);
    find("trials").querySelector("tbody").replaceChildren(...chosen.slice(first, last).map(row => {
      const line = document.createElement("tr");
      line.append(...columns.map(column => {
        const text = cell(column, row);
        return make("td", text, text.length > 40 ? "long" : column.look);
      }));
      return line;
    }));
    find("page").value = chosen.length ? `${count(first + 1)} – ${count(last)}` : "none";
    find("back").disabled = page === 0;
    find("on").disabled = last === chosen.length;
    find("pages").hidden = chosen.length <= PER_PAGE;
  }

  choose();
}

find("trials").addEventListener("toggle", showTrials, {once: true});
