// From values to pixels, and the ticks between.

function linearTicks(low, high, count, least = 0) {
  const raw = Math.max(least, (high - low) / Math.max(1, count));
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = power * [1, 2, 5, 10].find((m) => m * power >= raw * 0.999);
  const ticks = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k += 1) {
    ticks.push({ value: k * step, text: tickText(k * step, step) });
  }
  return ticks;
}

function tickText(value, step) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e6 || step < 1e-5) return signed(value.toExponential(1).replace(".0e", "e").replace("e+", "e"));
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  return digits ? signed(value.toFixed(digits)) : whole(value);
}

const SUPERSCRIPT = { "-": "\u207b", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };
const powerText = (exponent) => Math.abs(exponent) <= 3
  ? tickText(10 ** exponent, 10 ** exponent)
  : "10" + [...String(exponent)].map((c) => SUPERSCRIPT[c]).join("");

function logTicks(low, high, count) {
  const first = Math.floor(Math.log10(low)), last = Math.ceil(Math.log10(high));
  const decades = Math.log10(high) - Math.log10(low);
  const inside = (ticks) => ticks.filter((t) => t.value >= low * 0.999 && t.value <= high * 1.001);
  const multiples = decades > 3 ? [1] : decades > 1.3 ? [1, 2, 5] : [1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9];
  const step = Math.max(1, Math.ceil(decades / count));
  const ticks = [];
  for (let e = first; e <= last; e += 1) {
    if (((e % step) + step) % step) continue;
    for (const m of multiples) {
      const value = m * 10 ** e;
      ticks.push({ value, text: m === 1 ? powerText(e) : Math.abs(e) <= 3 ? significantShort(value) : `${m}·${powerText(e)}` });
    }
  }
  const kept = inside(ticks);
  if (kept.length >= 2) {
    if (kept.length <= count + 2) return kept;
    const coarse = kept.filter((t) => /^[125]/.test(String(Number(t.value.toPrecision(3))).replace(/[0.]/g, "")));
    return coarse.length >= 3 && coarse.length <= count + 2 ? coarse : spread(kept.length, count).map((i) => kept[i]);
  }
  return linearTicks(low, high, count).filter((t) => t.value > 0);
}
const significantShort = (value) => signed(String(Number(value.toPrecision(2))));

function scaleOf(low, high, log, from, to) {
  const f = log ? Math.log10 : (v) => v;
  const a = f(low), span = f(high) - a || 1;
  return (value) => from + ((f(value) - a) / span) * (to - from);
}

// The interval to show. A diverged method does not decide it unless it is alone: its line leaves the frame.
function domainOf(series, log, reference) {
  const bounds = (some) => {
    let low = Infinity, high = -Infinity;
    for (const s of some) for (const column of [s.y, s.low, s.high]) for (const value of column || []) {
      if (!drawable(value) || (log && value <= 0)) continue;
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
    return [low, high];
  };
  const calm = series.filter((s) => !s.diverged);
  let [low, high] = bounds(calm);
  if (low > high) [low, high] = bounds(series);
  if (low > high) [low, high] = log ? [0.1, 1] : [0, 1];
  const marked = drawable(reference) && (!log || reference > 0);
  if (marked) { low = Math.min(low, reference); high = Math.max(high, reference); }
  if (low === high) return log ? [low / 2, high * 2] : [low - (Math.abs(low) || 1) / 2, high + (Math.abs(high) || 1) / 2];
  const f = log ? Math.log : (v) => v;
  const height = marked ? (f(reference) - f(low)) / (f(high) - f(low)) : 1;
  const under = Math.max(0.04, 0.115 - height); // room for the label below the line
  if (log) return [low / (high / low) ** under, high * (high / low) ** 0.04];
  return [low >= 0 && low < (high - low) / 4 && height > 0.1 ? 0 : low - (high - low) * under, high + (high - low) * 0.04];
}
