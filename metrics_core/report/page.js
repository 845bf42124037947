"use strict";
// Everything from the data reaches the page as textContent, never as HTML.
const data = JSON.parse(document.getElementById("data").textContent);
const PAGE = 50;
const n = data.ids.length;
const state = {
  metric: 0, run: 0, against: 0, key: "mean", direction: 1, filter: "", page: 0, open: new Set(),
  differences: [], compared: [], means: [], order: [], selected: -1,
};
const byId = (id) => document.getElementById(id);
const paired = data.baseline !== null;
if (paired) {
  state.against = data.baseline;
  state.run = data.runs.findIndex((_, run) => run !== data.baseline);
}

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "class") made.className = value;
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}
const shown = (value) => (value === null ? "–" : value.toFixed(4));
const signed = (value) => (value === null ? "–" : (value > 0 ? "+" : "") + value.toFixed(4));
const score = (run, query) => data.scores[run][state.metric][query];

// ---------------------------------------------------------------- what follows from the choices

const haystack = data.ids.map((id, query) => (data.texts ? id + "\n" + data.texts[query] : id).toLowerCase());

function compute() {
  const of = (run) => data.scores[run][state.metric];
  const first = of(state.run), second = of(state.against);
  state.differences = paired
    ? first.map((value, query) => (value === null || second[query] === null ? null : value - second[query]))
    : new Array(n).fill(null);
  state.compared = data.ids.map((_, query) => query).filter((query) => state.differences[query] !== null);
  state.compared.sort((a, b) => state.differences[a] - state.differences[b]);
  state.means = data.ids.map((_, query) => {
    const values = data.runs.map((_, run) => of(run)[query]).filter((value) => value !== null);
    return values.length ? values.reduce((sum, value) => sum + value, 0) / values.length : null;
  });
}

function valueOf(key) {
  if (key === "mean") return (query) => state.means[query];
  if (key === "difference") return (query) => state.differences[query];
  if (key.startsWith("run")) return (query) => score(Number(key.slice(3)), query);
  if (key === "text") return (query) => lowered[query];
  if (key === "id") return (query) => padded[query];
  return (query) => query;
}

// Words are compared as they stand, which takes a tenth of the time of a collator; q2 comes before q10 all the same.
const padded = data.ids.map((id) => id.replace(/\d+/g, (digits) => digits.padStart(20, "0")));
const lowered = data.texts && data.texts.map((text) => text.toLowerCase());

function arrange() {
  const wanted = state.filter.trim().toLowerCase();
  const found = [];
  for (let query = 0; query < n; query++) if (!wanted || haystack[query].includes(wanted)) found.push(query);
  const of = valueOf(state.key), words = state.key === "id" || state.key === "text";
  const values = words ? null : Float64Array.from({ length: n }, (_, query) => of(query) ?? NaN);
  found.sort((a, b) => {
    if (words) return of(a) === of(b) ? a - b : state.direction * (of(a) < of(b) ? -1 : 1);
    const x = values[a], y = values[b];
    if (x !== x || y !== y) return (x !== x) - (y !== y) || a - b; // those without a score come last
    return state.direction * (x - y) || a - b;
  });
  const exact = found.findIndex((query) => data.ids[query].toLowerCase() === wanted);
  if (exact > 0) found.unshift(...found.splice(exact, 1)); // q1 comes before q10
  state.order = found;
  state.page = Math.min(state.page, Math.max(0, Math.ceil(found.length / PAGE) - 1));
}

// ---------------------------------------------------------------- the table

function columns() {
  const result = [["id", "query", false]];
  if (data.texts) result.push(["text", "text", false]);
  data.runs.forEach((name, run) => result.push(["run" + run, name, true]));
  if (data.runs.length > 1) result.push(["mean", "mean", true]);
  if (paired) result.push(["difference", "difference", true]);
  return result;
}

function drawHead() {
  const cells = columns().map(([key, name, number]) => {
    const button = element("button", { type: "button", class: "name" }, name);
    const cell = element("th", { scope: "col", class: number ? "number" : "" }, button);
    const active = state.key === key || (state.key === "mean" && data.runs.length === 1 && key === "run0");
    if (active) cell.setAttribute("aria-sort", state.direction > 0 ? "ascending" : "descending");
    button.addEventListener("click", () => {
      sortBy(key, state.key === key ? -state.direction : 1);
      document.querySelectorAll("#scores thead button")[columns().findIndex((each) => each[0] === key)].focus();
    });
    return cell;
  });
  document.querySelector("#scores thead tr").replaceChildren(...cells);
  for (const button of document.querySelectorAll("[data-order]")) {
    button.setAttribute("aria-pressed", String(button.dataset.order === state.key + ":" + state.direction));
  }
}

function drawBody() {
  const start = state.page * PAGE, end = Math.min(start + PAGE, state.order.length);
  const rows = [];
  for (const query of state.order.slice(start, end)) {
    rows.push(row(query));
    if (state.open.has(query)) rows.push(detail(query));
  }
  document.querySelector("#scores tbody").replaceChildren(...rows);
  const pages = Math.max(1, Math.ceil(state.order.length / PAGE));
  byId("found").textContent = state.order.length.toLocaleString("en") + " of " + n.toLocaleString("en") + " queries";
  byId("page").textContent = "page " + (state.page + 1) + " of " + pages;
  byId("previous").disabled = state.page === 0;
  byId("next").disabled = state.page + 1 >= pages;
}

function row(query) {
  const cells = columns().map(([key, , number]) => {
    if (key === "id") return element("th", { scope: "row" }, opener(query));
    if (key === "text") return element("td", { class: "text" }, data.texts[query]);
    if (key === "difference") {
      const value = state.differences[query];
      return element("td", { class: "number" + (value > 0 ? " good" : value < 0 ? " bad" : "") }, signed(value));
    }
    return element("td", { class: number ? "number" : "" }, shown(valueOf(key)(query)));
  });
  return element("tr", { "data-query": query }, ...cells);
}

function opener(query) {
  if (!(query in data.details)) return data.ids[query];
  const button = element("button", { type: "button", "aria-expanded": String(state.open.has(query)) }, data.ids[query]);
  button.addEventListener("click", () => {
    if (!state.open.delete(query)) state.open.add(query);
    drawBody();
    document.querySelector(`#scores tr[data-query="${query}"] button`).focus();
  });
  return button;
}

function detail(query) {
  const found = data.details[query];
  const lists = element("div", { class: "lists" });
  if (found.relevant.length) {
    const more = found.n_relevant - found.relevant.length;
    const items = found.relevant.map(([document, grade]) => documentItem(document, grade, null));
    const list = element("ol", {}, ...items);
    lists.append(element("section", {}, element("h4", {}, "Relevant" + (more > 0 ? ` (${more} more)` : "")), list));
  }
  for (const [run, ranking] of found.rankings) {
    const items = ranking.map(([document, grade, value]) => documentItem(document, grade, value));
    const list = items.length ? element("ol", {}, ...items) : element("p", {}, "nothing retrieved");
    lists.append(element("section", {}, element("h4", {}, data.runs[run] + " " + shown(score(run, query))), list));
  }
  for (const section of lists.querySelectorAll("section")) section.style.margin = "0";
  return element("tr", { class: "detail" }, element("td", { colspan: columns().length }, lists));
}

function documentItem(document, grade, value) {
  const badge = element("span", { class: "grade" + (grade > 0 ? " relevant" : "") }, grade === null ? "–" : String(grade));
  badge.title = grade === null ? "not judged" : "grade";
  const item = element("li", {}, badge, document);
  if (value !== null) item.append(element("span", { class: "score" }, String(+value.toPrecision(5))));
  if (document in data.documents) item.append(element("p", {}, data.documents[document]));
  return item;
}

function sortBy(key, direction) {
  Object.assign(state, { key, direction, page: 0 });
  arrange();
  drawHead();
  drawBody();
}

function turn(pages) {
  state.page += pages;
  drawBody();
}

// ---------------------------------------------------------------- charts of queries

const tip = byId("tip");

function showTip(text, x, y) {
  tip.textContent = text;
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  tip.style.left = Math.max(6, Math.min(x + 14, innerWidth - box.width - 6)) + "px";
  tip.style.top = (y + 16 + box.height > innerHeight ? Math.max(6, y - box.height - 12) : y + 16) + "px";
}
const hideTip = () => { tip.hidden = true; };

function about(query) {
  const lines = [data.ids[query]];
  if (data.texts && data.texts[query]) lines.push(data.texts[query].slice(0, 160));
  lines.push(data.runs[state.run] + ": " + shown(score(state.run, query)));
  lines.push(data.runs[state.against] + ": " + shown(score(state.against, query)));
  lines.push("difference: " + signed(state.differences[query]));
  return lines.join("\n");
}

function ticks(low, high, count) {
  const rough = (high - low) / count, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough * 0.999);
  const result = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) result.push(+(i * step).toPrecision(6));
  return result;
}

class Chart {
  constructor(id) {
    this.box = document.querySelector(`#${id} .canvas`);
    [this.canvas, this.overlay] = this.box.querySelectorAll("canvas"); // the queries; the ring around the selected one
    this.points = []; // [query, x, y] in pixels
    this.place = -1; // of the selected one among the points
    this.box.addEventListener("pointermove", (event) => this.hover(event));
    this.box.addEventListener("pointerleave", () => this.select(-1));
    this.box.addEventListener("blur", () => this.select(-1));
    this.box.addEventListener("click", (event) => { this.hover(event); this.find(); });
    this.box.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.draw()).observe(this.box);
  }

  begin() {
    const width = this.box.clientWidth, height = this.box.clientHeight, ratio = devicePixelRatio || 1;
    for (const canvas of [this.canvas, this.overlay]) {
      canvas.width = width * ratio;
      canvas.height = height * ratio;
      canvas.getContext("2d").scale(ratio, ratio);
    }
    const pen = this.canvas.getContext("2d");
    pen.font = "11px system-ui, sans-serif";
    const style = getComputedStyle(document.documentElement);
    this.colour = (name) => style.getPropertyValue(name).trim();
    return [pen, width, height];
  }

  // Lines and labels across, at the values of y.
  axisY(pen, values, y, left, right) {
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    for (const value of values) {
      pen.fillStyle = this.colour("--faint");
      pen.fillText(String(value), left - 7, y(value));
      pen.fillStyle = this.colour(value === 0 ? "--line" : "--grid");
      pen.fillRect(left, Math.round(y(value)), right - left, 1);
    }
  }

  hover(event) {
    const box = this.canvas.getBoundingClientRect();
    const found = this.nearest(event.clientX - box.left, event.clientY - box.top);
    this.select(found, event.clientX, event.clientY);
  }

  select(place, x, y) {
    state.selected = place < 0 ? -1 : this.points[place][0];
    this.place = place;
    for (const chart of charts) chart.ring();
    if (place < 0) return hideTip();
    const box = this.canvas.getBoundingClientRect(), [query, px, py] = this.points[place];
    showTip(about(query), x ?? box.left + px, y ?? box.top + py);
    if (x === undefined) byId("spoken").textContent = about(query);
  }

  key(event) {
    const steps = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 50, PageDown: -50 };
    const last = this.points.length - 1, now = this.place;
    let place;
    if (event.key in steps) place = now < 0 ? 0 : Math.max(0, Math.min(last, now + steps[event.key]));
    else if (event.key === "Home") place = 0;
    else if (event.key === "End") place = last;
    else if (event.key === "Enter" && now >= 0) return this.find();
    else if (event.key === "Escape") place = -1;
    else return;
    event.preventDefault();
    if (last >= 0) this.select(place);
  }

  find() {
    if (state.selected < 0) return;
    byId("filter").value = state.filter = data.ids[state.selected];
    if (state.selected in data.details) state.open.add(state.selected);
    state.page = 0;
    arrange();
    drawBody();
    byId("filter").focus();
    byId("filter").scrollIntoView({ block: "start" });
  }

  ring() {
    const pen = this.overlay.getContext("2d");
    pen.clearRect(0, 0, this.overlay.width, this.overlay.height);
    const point = state.selected < 0 ? undefined : this.points.find((each) => each[0] === state.selected);
    if (!point) return;
    pen.strokeStyle = this.colour("--ink");
    pen.lineWidth = 2;
    pen.beginPath();
    pen.arc(point[1], point[2], 6, 0, 2 * Math.PI);
    pen.stroke();
  }
}

class Differences extends Chart {
  draw() {
    const [pen, width, height] = this.begin();
    const order = state.compared;
    const values = order.map((query) => state.differences[query]);
    const low = Math.min(0, values[0] ?? 0), high = Math.max(0, values.at(-1) ?? 0), span = high - low || 1;
    const left = 44, right = width - 8, top = 10, bottom = height - 24;
    const y = (value) => bottom - ((value - low) / span) * (bottom - top);
    this.axisY(pen, ticks(low, low + span, 5), y, left, right);
    const step = (right - left) / Math.max(1, order.length), bar = Math.max(1, step > 3 ? step - 1 : step);
    const good = this.colour("--good"), bad = this.colour("--bad");
    this.points = order.map((query, place) => [query, left + (place + 0.5) * step, y(values[place])]);
    order.forEach((query, place) => {
      pen.fillStyle = values[place] > 0 ? good : bad;
      const from = Math.min(y(0), y(values[place]));
      pen.fillRect(left + place * step, from, bar, Math.max(Math.abs(y(values[place]) - y(0)), values[place] ? 1 : 0));
    });
    pen.fillStyle = this.colour("--faint");
    pen.textAlign = "left";
    pen.textBaseline = "alphabetic";
    const count = (test) => values.filter(test).length.toLocaleString("en");
    pen.fillText(`${count((value) => value < 0)} lower`, left, height - 7);
    pen.textAlign = "center";
    pen.fillText(`${count((value) => value === 0)} equal`, (left + right) / 2, height - 7);
    pen.textAlign = "right";
    pen.fillText(`${count((value) => value > 0)} higher`, right, height - 7);
    this.left = left;
    this.step = step;
  }

  nearest(x) {
    if (!this.points.length) return -1;
    return Math.max(0, Math.min(this.points.length - 1, Math.floor((x - this.left) / this.step)));
  }
}

class Scatter extends Chart {
  draw() {
    const [pen, width, height] = this.begin();
    const both = state.compared;
    let low = 0, high = 0;
    for (const query of both) {
      for (const run of [state.run, state.against]) {
        low = Math.min(low, score(run, query));
        high = Math.max(high, score(run, query));
      }
    }
    const span = high - low || 1, left = 44, right = width - 10, top = 10, bottom = height - 40;
    const x = (value) => left + ((value - low) / span) * (right - left);
    const y = (value) => bottom - ((value - low) / span) * (bottom - top);
    const values = ticks(low, low + span, 5);
    this.axisY(pen, values, y, left, right);
    pen.textAlign = "center";
    pen.textBaseline = "top";
    for (const value of values) {
      pen.fillStyle = this.colour("--grid");
      pen.fillRect(Math.round(x(value)), top, 1, bottom - top);
      pen.fillStyle = this.colour("--faint");
      pen.fillText(String(value), x(value), bottom + 6);
    }
    pen.fillText(short(data.runs[state.against]) + " →,  " + short(data.runs[state.run]) + " ↑", (left + right) / 2, bottom + 22);
    pen.strokeStyle = this.colour("--line");
    pen.beginPath();
    pen.moveTo(x(low), y(low));
    pen.lineTo(x(high), y(high));
    pen.stroke();
    const good = this.colour("--good"), bad = this.colour("--bad"), even = this.colour("--faint");
    pen.globalAlpha = Math.max(0.25, Math.min(0.8, 40 / Math.sqrt(both.length || 1)));
    this.points = both.map((query) => [query, x(score(state.against, query)), y(score(state.run, query))]);
    const size = both.length > 2000 ? 3 : 5;
    for (const [query, px, py] of this.points) {
      const difference = state.differences[query];
      pen.fillStyle = difference > 0 ? good : difference < 0 ? bad : even;
      pen.fillRect(px - size / 2, py - size / 2, size, size);
    }
    pen.globalAlpha = 1;
  }

  nearest(x, y) {
    let best = -1, distance = 400; // within 20 pixels
    this.points.forEach(([, px, py], place) => {
      const away = (px - x) ** 2 + (py - y) ** 2;
      if (away < distance) [best, distance] = [place, away];
    });
    return best;
  }
}

const short = (name) => (name.length > 24 ? name.slice(0, 23) + "…" : name);
const charts = [];

function drawCharts() {
  for (const chart of charts) chart.place = -1;
  state.selected = -1;
  hideTip();
  for (const chart of charts) chart.draw();
}

// ---------------------------------------------------------------- beginning

function options(select, names, chosen) {
  select.append(...names.map((name, place) => element("option", { value: place }, name)));
  select.value = String(chosen);
}

function refresh() {
  compute();
  arrange();
  drawHead();
  drawBody();
}

options(byId("metric"), data.metrics, 0);
byId("metric").addEventListener("change", (event) => { state.metric = Number(event.target.value); refresh(); drawCharts(); });
if (paired) {
  for (const side of ["run", "against"]) {
    options(byId(side), data.runs, state[side]);
    byId(side).addEventListener("change", (event) => { state[side] = Number(event.target.value); refresh(); drawCharts(); });
  }
  charts.push(new Differences("differences"), new Scatter("scatter"));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawCharts);
}
byId("chosen").addEventListener("submit", (event) => event.preventDefault());
byId("filter").addEventListener("input", (event) => {
  Object.assign(state, { filter: event.target.value, page: 0 });
  arrange();
  drawBody();
});
byId("previous").addEventListener("click", () => turn(-1));
byId("next").addEventListener("click", () => turn(1));
for (const button of document.querySelectorAll("[data-order]")) {
  const [key, direction] = button.dataset.order.split(":");
  button.addEventListener("click", () => sortBy(key, Number(direction)));
}

// Marks of the drawn charts say what they are.
for (const mark of document.querySelectorAll("figure svg [aria-label]")) {
  if (mark.getAttribute("role") !== "graphics-symbol" || !mark.matches("path, line, rect, text")) continue;
  mark.addEventListener("pointermove", (event) => showTip(mark.getAttribute("aria-label"), event.clientX, event.clientY));
  mark.addEventListener("pointerleave", hideTip);
}

refresh(); // the charts are drawn as soon as they have a size
document.documentElement.dataset.ready = "yes";
