// Elements, and numbers as people read them. Text only ever enters the page as text nodes.

const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}
const html = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

const drawable = (value) => value !== null && value !== undefined && Number.isFinite(value);
const signed = (text) => text.replace("-", "\u2212");

function significant(value) {
  if (!drawable(value)) return "–";
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size < 1e-3 || size >= 1e6) return signed(value.toExponential(2).replace("e+", "e"));
  return signed(size >= 1000 ? value.toFixed(0) : value.toPrecision(4));
}

const whole = (value) => signed(String(Math.round(value))).replace(/\B(?=(\d{3})+$)/g, "\u202f");

function bytes(value) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let power = 0;
  while (value >= 1000 && power < units.length - 1) { value /= 1000; power += 1; }
  return `${Number(value.toPrecision(3))}\u202f${units[power]}`;
}

const AXES = {
  round: { button: "Rounds", label: "communication rounds", name: "Round", format: whole },
  steps: { button: "Local steps", label: "local steps of a client", name: "Local step", format: whole },
  bytes: { button: "Bytes", label: "bytes sent, up and down, over all clients", name: "Sent", format: bytes },
};

function swatch(method) {
  return svg("svg", { class: `swatch m${method.colour}`, width: 28, height: 10, "aria-hidden": "true" },
    svg("line", { x1: 1, x2: 27, y1: 5, y2: 5, "stroke-dasharray": method.dash || null }));
}

function choice(label, options, chosen, choose) {
  const buttons = options.map((option) => html("button", {
    type: "button", "data-value": option.value, "aria-pressed": String(option.value === chosen),
    disabled: Boolean(option.disabled), title: option.disabled || null,
    onclick: () => {
      for (const other of buttons) other.setAttribute("aria-pressed", String(other === buttons[options.indexOf(option)]));
      choose(option.value);
    },
  }, option.text));
  return html("div", { class: "choice", role: "group", "aria-label": label },
    html("span", { class: "label", "aria-hidden": "true" }, label), html("span", { class: "segments" }, buttons));
}

function valuesTable(head, rows, caption) {
  return html("div", { class: "scroll tall", tabindex: 0, role: "region", "aria-label": caption },
    html("table", {}, html("caption", {}, caption),
      html("thead", {}, html("tr", {}, head.map((text) => html("th", { scope: "col", class: "n" }, text)))),
      html("tbody", {}, rows.map((row) => html("tr", {}, row.map((text, i) =>
        i === 0 ? html("th", { scope: "row", class: "n" }, text) : html("td", { class: "n" }, text)))))));
}

// A table is only built when somebody opens it.
function onDemand(summary, build) {
  const body = html("div");
  const details = html("details", { ontoggle: () => { if (details.open) body.replaceChildren(build()); } },
    html("summary", {}, summary), body);
  details.refresh = () => { if (details.open) body.replaceChildren(build()); };
  return details;
}

// At most so many of the indices 0 … n−1, evenly, with both ends.
function spread(n, most) {
  if (n <= most) return Array.from({ length: n }, (_, i) => i);
  return Array.from({ length: most }, (_, i) => Math.round((i * (n - 1)) / (most - 1)));
}
