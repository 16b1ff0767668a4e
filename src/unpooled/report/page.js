// The theme, at once; the rest when the page has been read.

const root = document.documentElement;
const prefersDark = matchMedia("(prefers-color-scheme: dark)");
let chosenTheme = null;
function applyTheme() {
  const dark = chosenTheme === null ? prefersDark.matches : chosenTheme === "dark";
  root.dataset.theme = dark ? "dark" : "light";
  const button = document.getElementById("theme");
  if (button) button.setAttribute("aria-pressed", String(dark));
}
prefersDark.addEventListener("change", applyTheme);
applyTheme();

document.addEventListener("DOMContentLoaded", () => {
  const button = document.getElementById("theme");
  button.hidden = false;
  button.addEventListener("click", () => {
    chosenTheme = root.dataset.theme === "dark" ? "light" : "dark";
    applyTheme();
  });
  applyTheme();

  const data = JSON.parse(document.getElementById("data").textContent);
  const state = { metric: data.selected, axis: "round", hidden: new Set() };
  const redraw = [];
  redraw.push(curvesSection(data, state, () => redraw.forEach((draw) => draw && draw())), estimateSection(data, state));
  redraw.forEach((draw) => draw && draw());
});
