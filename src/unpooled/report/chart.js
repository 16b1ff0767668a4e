// A line chart with a crosshair that pointer and arrow keys move. It announces itself as a slider over x.
//
// A series is { method, x, y, low, high, diverged }; a view { series, log, x: axis, label, reference, points }.

let clips = 0;

class Chart {
  constructor({ describe, onmove }) {
    this.describe = describe;
    this.onmove = onmove;
    this.at = null; // index into this.stops
    this.clip = `clip${clips += 1}`;
    this.node = html("div", {
      class: "chart", tabindex: 0, role: "slider", "aria-orientation": "horizontal",
      onkeydown: (event) => this.key(event), onblur: () => this.move(null),
      onpointermove: (event) => this.point(event), onpointerdown: (event) => this.point(event),
      onpointerleave: () => { if (document.activeElement !== this.node) this.move(null); },
    });
    new ResizeObserver(() => { if (this.view && this.node.clientWidth !== this.width) this.draw(); }).observe(this.node);
  }

  show(view) {
    this.view = view;
    this.stops = [...new Set(view.series.flatMap((s) => s.x))].sort((a, b) => a - b);
    this.at = null;
    this.node.setAttribute("aria-label", `${view.label} over ${view.x.label}; arrow keys move the crosshair`);
    this.node.setAttribute("aria-valuemin", 0);
    this.node.setAttribute("aria-valuemax", Math.max(0, this.stops.length - 1));
    this.draw();
    this.move(null);
  }

  draw() {
    const { series, log, x, reference, points } = this.view;
    const width = (this.width = this.node.clientWidth || 640);
    const height = Math.round(Math.min(440, Math.max(260, width * 0.55)));
    const [low, high] = domainOf(series, log, reference && reference.value);
    const yTicks = (log ? logTicks : linearTicks)(low, high, height > 300 ? 7 : 5);
    const left = 14 + 7.6 * Math.max(2, ...yTicks.map((t) => t.text.length));
    const right = width - 14, top = 12, bottom = height - 44;
    const last = this.stops.length ? this.stops[this.stops.length - 1] : 1;
    const first = x.log ? this.stops[0] || 0.1 : points ? 0.5 : Math.min(0, this.stops[0] || 0);
    const X = (this.X = scaleOf(first, points ? last + 0.5 : last || 1, Boolean(x.log), left, right));
    const Y = (this.Y = scaleOf(low, high, log, bottom, top));
    this.frame = { left, right, top, bottom };
    const room = Math.max(2, Math.floor((right - left) / 75));
    const xTicks = x.log ? this.stops.map((value) => ({ value })) : linearTicks(first, last || 1, room, 1);

    const grid = svg("g", { class: "grid" }, yTicks.map((t) => svg("line", { x1: left, x2: right, y1: Y(t.value), y2: Y(t.value) })));
    const yLabels = svg("g", { class: "ticks y" }, yTicks.map((t) => svg("text", { x: left - 8, y: Y(t.value), dy: "0.35em", "text-anchor": "end" }, t.text)));
    const xLabels = svg("g", { class: "ticks x" }, xTicks.map((t) => {
      const text = x.format(t.value), half = text.length * 3.7;
      return svg("text", { x: Math.max(half, Math.min(width - half, X(t.value))), y: bottom + 18, "text-anchor": "middle" }, text);
    }));
    const marks = xTicks.map((t) => svg("line", { class: "mark", x1: X(t.value), x2: X(t.value), y1: bottom, y2: bottom + 4 }));
    const lines = svg("g", { "clip-path": `url(#${this.clip})` },
      series.map((s) => this.band(s, log, low)), series.map((s) => this.line(s, log, points)));
    const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" },
      svg("clipPath", { id: this.clip }, svg("rect", { x: left - 4, y: top - 3, width: right - left + 8, height: bottom - top + 6 })),
      grid, svg("line", { class: "axis", x1: left, x2: right, y1: bottom, y2: bottom }), marks, yLabels, xLabels,
      svg("text", { class: "axis-label", x: (left + right) / 2, y: height - 6, "text-anchor": "middle" }, x.label),
      lines, this.referenceLine(reference, log), series.map((s) => this.breakdown(s, log)));
    this.cross = svg("g", { class: "cross", visibility: "hidden" });
    root.append(this.cross);
    this.node.replaceChildren(root);
    this.move(this.at);
  }

  segments(s, log, needed) {
    const parts = [[]];
    s.x.forEach((_, i) => {
      const fine = needed.every((column) => drawable(column[i])) && (!log || needed[0][i] > 0);
      if (fine) parts[parts.length - 1].push(i);
      else if (parts[parts.length - 1].length) parts.push([]);
    });
    return parts.filter((part) => part.length);
  }

  line(s, log, points) {
    const { X, Y } = this;
    const px = (i) => `${X(s.x[i]).toFixed(1)},${this.level(s.y[i]).toFixed(1)}`;
    const parts = this.segments(s, log, [s.y]);
    const path = parts.map((part) => "M" + part.map(px).join("L")).join("");
    const marked = (points || this.view.x.log) && s.x.length <= 80;
    const dots = parts.flatMap((part) => marked || part.length === 1 ? part : []);
    return svg("g", { class: `line m${s.method.colour}${s.truth ? " truth" : ""}`, "data-method": s.method.name },
      svg("path", { d: path, "stroke-dasharray": s.method.dash || null }),
      dots.map((i) => svg("circle", { cx: X(s.x[i]), cy: Y(s.y[i]), r: 2.6 })));
  }

  // Far outside the frame a path needs no precision, and renderers dislike 1e300.
  level(value) { return Math.max(-1e4, Math.min(1e4, this.Y(value))); }

  band(s, log, floor) {
    if (!s.low) return null;
    const { X } = this;
    const d = this.segments(s, log, [s.high, s.low]).map((part) => {
      const upper = part.map((i) => `${X(s.x[i]).toFixed(1)},${this.level(s.high[i]).toFixed(1)}`);
      const lower = part.map((i) => `${X(s.x[i]).toFixed(1)},${this.level(log ? Math.max(s.low[i], floor) : s.low[i]).toFixed(1)}`);
      return `M${upper.join("L")}L${lower.reverse().join("L")}Z`;
    }).join("");
    return svg("path", { class: `band m${s.method.colour}`, d });
  }

  referenceLine(reference, log) {
    if (!reference || !drawable(reference.value) || (log && reference.value <= 0)) return null;
    const { left, right, bottom } = this.frame, y = this.Y(reference.value);
    const below = y + 18 <= bottom;
    return svg("g", { class: "reference" }, svg("line", { x1: left, x2: right, y1: y, y2: y }),
      svg("text", { x: left + 6, y: below ? y + 14 : y - 6 }, `${reference.label} ${significant(reference.value)}`));
  }

  // A cross where the line of a diverged method ends, at the frame's edge if it ends outside.
  breakdown(s, log) {
    if (!s.diverged || this.view.points) return null;
    const part = this.segments(s, log, [s.y]).pop();
    if (!part) return null;
    const i = part[part.length - 1], { top, bottom } = this.frame;
    const x = this.X(s.x[i]), y = Math.max(top, Math.min(bottom, this.Y(s.y[i])));
    return svg("path", { class: `breakdown m${s.method.colour}`, d: `M${x - 5},${y - 5}l10,10m0,-10l-10,10` });
  }

  point(event) {
    if (!this.stops.length) return;
    const box = this.node.firstChild.getBoundingClientRect();
    const px = ((event.clientX - box.left) / box.width) * this.width;
    let best = 0;
    this.stops.forEach((stop, i) => { if (Math.abs(this.X(stop) - px) < Math.abs(this.X(this.stops[best]) - px)) best = i; });
    this.move(best);
  }

  key(event) {
    const n = this.stops.length, page = Math.max(1, Math.round(n / 10));
    const now = this.at === null ? n - 1 : this.at;
    const to = { ArrowRight: now + 1, ArrowUp: now + 1, ArrowLeft: now - 1, ArrowDown: now - 1, PageUp: now + page,
      PageDown: now - page, Home: 0, End: n - 1, Escape: null }[event.key];
    if (to === undefined || !n) return;
    event.preventDefault();
    this.move(to === null ? null : Math.max(0, Math.min(n - 1, to)));
  }

  // The point of a series nearest to x; null where the series has ended before.
  nearest(s, x) {
    let low = 0, high = s.x.length - 1;
    if (high < 0) return null;
    while (high - low > 1) { const middle = (low + high) >> 1; if (s.x[middle] <= x) low = middle; else high = middle; }
    const i = Math.abs(s.x[low] - x) <= Math.abs(s.x[high] - x) ? low : high;
    const end = s.x.length - 1, gap = end ? s.x[end] - s.x[end - 1] : 0;
    return i === end && x > s.x[end] + gap ? null : i;
  }

  move(at) {
    this.at = at;
    const n = this.stops.length;
    const x = at === null ? null : this.stops[at];
    this.node.setAttribute("aria-valuenow", at === null ? Math.max(0, n - 1) : at);
    this.node.setAttribute("aria-valuetext", this.describe(x, this));
    this.cross.setAttribute("visibility", at === null ? "hidden" : "visible");
    if (at !== null) {
      const { X, Y, frame } = this, px = X(x), text = this.view.x.format(x), half = text.length * 3.9 + 6;
      const dots = this.view.series.map((s) => {
        const i = this.nearest(s, x);
        const fine = i !== null && drawable(s.y[i]) && (!this.view.log || s.y[i] > 0);
        const y = fine ? Y(s.y[i]) : NaN;
        return y >= frame.top - 3 && y <= frame.bottom + 3 ? svg("circle", { class: `m${s.method.colour}${s.truth ? " truth" : ""}`, cx: X(s.x[i]), cy: y, r: 4 }) : null;
      });
      const middle = Math.max(half, Math.min(this.width - half, px));
      this.cross.replaceChildren(svg("line", { x1: px, x2: px, y1: frame.top, y2: frame.bottom }), ...dots.filter(Boolean),
        svg("rect", { x: middle - half, y: frame.bottom + 4, width: 2 * half, height: 20, rx: 2 }),
        svg("text", { x: middle, y: frame.bottom + 18, "text-anchor": "middle" }, text));
    }
    this.onmove(x, this);
  }
}
