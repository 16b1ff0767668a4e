// Coefficients in the place of their pixels, one picture a class.

function images(data, estimate, host, shown, methodOf) {
  const [height, width] = estimate.image, size = height * width;
  const grid = html("div", { class: "pictures" });
  const remark = html("p", { class: "remark" });
  const controls = html("div", { class: "controls" });
  let chosen = estimate.best;
  // Alpha carries the size, so that zero is the page's own colour in either theme.
  function paint(canvas, bytes, from) {
    canvas.width = width;
    canvas.height = height;
    const context = canvas.getContext("2d"), pixels = context.createImageData(width, height);
    for (let j = 0; j < size; j += 1) {
      const level = (bytes.charCodeAt(from + j) << 24) >> 24; // a signed byte
      const colour = level > 0 ? [0, 114, 178] : [213, 94, 0];
      pixels.data.set([...colour, level ? 40 + (215 * Math.sqrt(Math.abs(level) / 127)) : 0], 4 * j);
    }
    context.putImageData(pixels, 0, 0);
  }
  function draw() {
    const entries = shown();
    if (!entries.some((entry) => entry.name === chosen) && entries.length) chosen = entries[0].name;
    controls.replaceChildren(...(entries.length > 1 ? [choice("Method", entries.map((e) => ({ value: e.name, text: e.name })), chosen,
      (value) => { chosen = value; draw(); })] : []));
    const entry = entries.find((e) => e.name === chosen);
    if (!entry) { grid.replaceChildren(html("p", {}, "All methods are switched off.")); remark.textContent = ""; return; }
    const bytes = atob(entry.pixels);
    grid.replaceChildren(...entry.zeros.map((zeros, c) => {
      const share = `${Math.round((100 * zeros) / size)}\u202f% zero`;
      const canvas = html("canvas", { role: "img", "aria-label": `Coefficients of class ${c}: ${share}` });
      paint(canvas, bytes, c * size);
      return html("figure", { "data-class": c }, canvas, html("figcaption", {}, html("strong", {}, String(c)), html("span", { class: "readout" }, share)));
    }));
    remark.textContent = `${entry.name}: the strongest colour is a coefficient of ${significant(entry.largest)}.`;
  }
  host.append(html("div", { class: "over" }, html("h3", {}, "One picture a class"), controls), grid, remark);
  return draw;
}
