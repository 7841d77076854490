// SPDX-License-Identifier: Apache-2.0
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const { tokens, heads } = data;
  const T = tokens.length;
  const UNIT = 10000; // weights come as whole numbers of 1/10000; -1 stands for NaN
  const TABLE_LIMIT = 72; // more tokens than this are drawn on a canvas
  const byId = (id) => document.getElementById(id);
  const darkScheme = matchMedia("(prefers-color-scheme: dark)");
  let current = 0; // the head in the large view
  let row = -1; // the token whose weights the strip shows

  // --- small helpers ---------------------------------------------------------------------------
  // Text goes in as text nodes only, so no token is ever read as HTML.
  function element(name, attributes = {}, ...children) {
    const node = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (key === "class") node.className = value;
      else if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
      else node.setAttribute(key, value);
    }
    node.append(...children);
    return node;
  }
  const percent = (share) => (share * 100).toFixed(share < 0.0995 ? 1 : 0) + " %";
  const weight = (head, i, j) => heads[head].map[i * T + j] / UNIT;
  const visible = (token) => (token.trim() === "" ? "␠" : token);

  // --- colours: OKLab interpolation between stops, over the square root of the weight -----------
  const STOPS = {
    light: ["#f1f3fa", "#c9d3f3", "#93a6e6", "#5f6fd6", "#4338b8", "#2c1a85", "#180a4d"],
    dark: ["#1f2330", "#2b3160", "#443f9c", "#7558d6", "#ae84f2", "#e5b8f4", "#fff1e6"],
  };
  const toLinear = (c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  const toGamma = (c) => (c <= 0.0031308 ? 12.92 * c : 1.055 * c ** (1 / 2.4) - 0.055);
  function oklab(hex) {
    const [r, g, b] = [1, 3, 5].map((at) => toLinear(parseInt(hex.slice(at, at + 2), 16) / 255));
    const l = Math.cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b);
    const m = Math.cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b);
    const s = Math.cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b);
    return [
      0.2104542553 * l + 0.793617785 * m - 0.0040720468 * s,
      1.9779984951 * l - 2.428592205 * m + 0.4505937099 * s,
      0.0259040371 * l + 0.7827717662 * m - 0.808675766 * s,
    ];
  }
  function rgb([L, a, b]) {
    const l = (L + 0.3963377774 * a + 0.2158037573 * b) ** 3;
    const m = (L - 0.1055613458 * a - 0.0638541728 * b) ** 3;
    const s = (L - 0.0894841775 * a - 1.291485548 * b) ** 3;
    return [
      4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
      -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
      -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
    ].map((c) => Math.round(255 * Math.min(1, Math.max(0, toGamma(Math.max(0, c))))));
  }
  function makeRamp(stops) {
    const labs = stops.map(oklab);
    return Array.from({ length: 256 }, (_, k) => {
      const at = (k / 255) * (labs.length - 1);
      const low = Math.min(labs.length - 2, Math.floor(at));
      const lab = labs[low].map((c, x) => c + (at - low) * (labs[low + 1][x] - c));
      const colour = rgb(lab);
      const [r, g, b] = colour.map((c) => toLinear(c / 255));
      // Text in the ink with more contrast (WCAG 2): they are equal at a luminance of 0.18.
      const dark = 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.18;
      return { rgb: colour, ink: dark ? "#0b0a1a" : "#ffffff" };
    });
  }
  const ramps = { light: makeRamp(STOPS.light), dark: makeRamp(STOPS.dark) };
  function shade(share) {
    const ramp = darkScheme.matches ? ramps.dark : ramps.light;
    return ramp[Math.round(255 * Math.sqrt(Math.min(1, Math.max(0, share))))];
  }
  function paint(node, share) {
    const { rgb: colour, ink } = shade(share);
    node.style.backgroundColor = `rgb(${colour.join(" ")})`;
    node.style.color = ink;
  }

  // --- words -----------------------------------------------------------------------------------
  const GROUPS = {
    previous: "the previous token",
    next: "the next token",
    self: "the token itself",
    first: `the first token ${tokens[0]}`,
    last: `the last token ${tokens[T - 1]}`,
    token: "one word",
    near: "close by",
    broad: "spread widely",
    mixed: "mixed",
  };
  const SHORT = {
    previous: "previous", next: "next", self: "itself", first: tokens[0], last: tokens[T - 1],
    near: "close by", broad: "wide", mixed: "mixed",
  };
  function shortWords(head) {
    return head.pattern === "token" ? `“${tokens[head.token]}”` : SHORT[head.pattern];
  }
  function linkWords(head) {
    if (!head.link || head.link.share < 0.05) return "–";
    return `${tokens[head.link.from]} → ${tokens[head.link.to]}, ${percent(head.link.share)}`;
  }

  // --- head of the page ------------------------------------------------------------------------
  function drawHeader() {
    const file = data.weights.split("/").pop();
    byId("source").textContent = `${file} · ${data.prefix.replace(/\.$/, "")} · ${T} tokens`;
    const title = heads.length === 1 ? "What one attention head looks at"
      : `What ${heads.length} attention heads look at`;
    byId("title").textContent = title;
    byId("sentence").textContent = tokens.join(" ");
    document.title = `${title}: ${tokens.slice(0, 8).join(" ")}`;
    for (const [pattern, words] of Object.entries(GROUPS)) {
      const members = heads.filter((head) => head.pattern === pattern);
      if (members.length === 0) continue;
      const chips = members.map((head) =>
        element("button", {
          type: "button", title: head.looks, onclick: () => select(head.head),
        }, element("span", { class: "hidden" }, "Head "), pattern === "token" ? `${head.head} ${visible(tokens[head.token])}` : String(head.head)));
      byId("groups").append(element("li", {}, element("span", {}, words), ...chips));
    }
    const parts = [`libmha ${data.version}, kernels ${data.kernels}.`];
    if (data.expect) {
      const error = data.expect.largest_error === null ? "not a number"
        : data.expect.largest_error.toExponential(1);
      parts.push(data.expect.matched
        ? `The output matches the expected one: largest error ${error}.`
        : `The output MISSES the expected one: largest error ${error}.`);
    }
    byId("footer").textContent = parts.join(" ");
  }

  // --- small multiples -------------------------------------------------------------------------
  function drawMap(canvas, h) {
    canvas.width = T;
    canvas.height = T;
    const context = canvas.getContext("2d");
    const image = context.createImageData(T, T);
    for (let at = 0; at < T * T; at++) {
      image.data.set([...shade(heads[h].map[at] / UNIT).rgb, 255], 4 * at);
    }
    context.putImageData(image, 0, 0);
  }
  function drawCards() {
    byId("cards").replaceChildren(...heads.map((head) => {
      const canvas = element("canvas", { "aria-hidden": "true" });
      drawMap(canvas, head.head);
      return element("button", {
        type: "button", class: "card", "aria-pressed": String(head.head === current),
        "aria-label": `Head ${head.head}: ${head.looks}`, title: head.looks,
        onclick: () => select(head.head),
      }, canvas, element("span", { class: "card-line" },
        element("b", {}, `Head ${head.head}`), element("span", {}, shortWords(head))));
    }));
  }

  // --- large view ------------------------------------------------------------------------------
  function drawStrip() {
    byId("strip").replaceChildren(...tokens.map((token, j) => {
      const node = element("span", { class: j === row ? "from" : "" }, visible(token));
      if (row >= 0) paint(node, weight(current, row, j));
      return node;
    }));
  }
  function mapTable() {
    const caption = element("caption", { class: "hidden" },
      `Head ${current}: ${heads[current].looks}. Each row is a token that looks, each column a token ` +
      "looked at, each cell the share of the weight in percent. Arrow keys move between cells.");
    const top = element("tr", {}, element("th", { class: "corner", scope: "col" },
      element("small", {}, "looked at →"), element("small", {}, "↓ looks")));
    tokens.forEach((token) => {
      top.append(element("th", { scope: "col", title: token }, element("span", {}, visible(token))));
    });
    const body = element("tbody");
    tokens.forEach((token, i) => {
      const line = element("tr", {}, element("th", { scope: "row", title: token }, visible(token)));
      for (let j = 0; j < T; j++) {
        const share = weight(current, i, j);
        const cell = element("td", {
          tabindex: i === 0 && j === 0 ? "0" : "-1", "data-i": i, "data-j": j,
        });
        paint(cell, share);
        cell.append(share >= 0.05 ? element("span", { class: "value" }, (share * 100).toFixed(0))
          : element("span", { class: "hidden" }, (share * 100).toFixed(1)));
        line.append(cell);
      }
      body.append(line);
    });
    const table = element("table", { class: "map", role: "grid" }, caption,
      element("thead", {}, top), body);
    table.addEventListener("mouseover", (event) => point(event.target.closest("td")));
    table.addEventListener("focusin", (event) => {
      // Tab leads to one cell of the map, the last one that had the focus.
      table.querySelectorAll('td[tabindex="0"]').forEach((cell) => { cell.tabIndex = -1; });
      event.target.tabIndex = 0;
      point(event.target.closest("td"));
    });
    table.addEventListener("mouseleave", () => { byId("tip").hidden = true; });
    table.addEventListener("focusout", () => { byId("tip").hidden = true; });
    table.addEventListener("keydown", moveFocus);
    return table;
  }
  function point(cell) {
    if (!cell) return;
    const [i, j] = [Number(cell.dataset.i), Number(cell.dataset.j)];
    const table = cell.closest("table");
    table.querySelectorAll("th.on").forEach((th) => th.classList.remove("on"));
    table.tHead.rows[0].cells[j + 1].classList.add("on");
    cell.parentNode.cells[0].classList.add("on");
    showTip(i, j, cell.getBoundingClientRect());
    if (row !== i) {
      row = i;
      drawStrip();
    }
  }
  function showTip(i, j, box) {
    const tip = byId("tip");
    tip.replaceChildren(`${visible(tokens[i])} → ${visible(tokens[j])}  `,
      element("b", {}, (weight(current, i, j) * 100).toFixed(2) + " %"));
    tip.hidden = false;
    const { width, height } = tip.getBoundingClientRect();
    const left = Math.min(innerWidth - width - 8, Math.max(8, box.left + box.width / 2 - width / 2));
    tip.style.left = `${left}px`;
    tip.style.top = `${box.top > height + 12 ? box.top - height - 8 : box.bottom + 8}px`;
  }
  // Cells as large as the frame allows; numbers only where they can be read.
  function fitMap() {
    const table = byId("map-frame").querySelector(".map");
    if (!table) return;
    const labels = table.tBodies[0].rows[0].cells[0].getBoundingClientRect().width;
    const cell = Math.floor((byId("map-frame").clientWidth - labels - 8) / T) - 2;
    table.style.setProperty("--cell", `${Math.min(44, Math.max(13, cell))}px`);
    table.classList.toggle("small", cell < 24);
  }
  const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
  function moveFocus(event) {
    const cell = event.target.closest("td");
    if (!cell) return;
    let [i, j] = [Number(cell.dataset.i), Number(cell.dataset.j)];
    if (STEPS[event.key]) {
      i += STEPS[event.key][0];
      j += STEPS[event.key][1];
    } else if (event.key === "Home") j = 0;
    else if (event.key === "End") j = T - 1;
    else return;
    event.preventDefault();
    const next = event.currentTarget.querySelector(`td[data-i="${i}"][data-j="${j}"]`);
    if (next) next.focus();
  }

  // Long inputs: the map on a canvas, and for everybody a table of the largest weights of each token.
  function mapCanvas() {
    const canvas = element("canvas", { class: "map-canvas", "aria-hidden": "true" });
    drawMap(canvas, current);
    canvas.addEventListener("mousemove", (event) => {
      const box = canvas.getBoundingClientRect();
      const at = (offset, size) => Math.min(T - 1, Math.max(0, Math.floor((offset / size) * T)));
      const [i, j] = [at(event.offsetY, box.height), at(event.offsetX, box.width)];
      showTip(i, j, { left: event.clientX, top: event.clientY, bottom: event.clientY, width: 0 });
    });
    canvas.addEventListener("mouseleave", () => { byId("tip").hidden = true; });
    const body = element("tbody");
    tokens.forEach((token, i) => {
      const best = tokens.map((_, j) => j)
        .sort((a, b) => weight(current, i, b) - weight(current, i, a)).slice(0, 5)
        .map((j) => `${visible(tokens[j])} (${j}) ${percent(weight(current, i, j))}`).join(", ");
      body.append(element("tr", {}, element("th", { scope: "row" }, `${visible(token)} (${i})`),
        element("td", { class: "words" }, best)));
    });
    const table = element("table", { class: "top" },
      element("caption", { class: "hidden" }, `Head ${current}: the five largest weights of each token`),
      body);
    return [canvas, element("details", {},
      element("summary", {}, "The five largest weights of each token, as a table"), table)];
  }
  function drawNumbers(head) {
    const entries = {
      "Effective tokens": head.effective_tokens.toFixed(1),
      "Entropy": `${head.entropy_nats.toFixed(2)} nats`,
      "Mean distance": `${head.mean_distance.toFixed(1)} tokens`,
      "Strongest distant link": linkWords(head),
    };
    byId("numbers").replaceChildren(...Object.entries(entries).map(([name, value]) =>
      element("div", {}, element("dt", {}, name), element("dd", {}, value))));
  }
  function drawLegend() {
    const ramp = darkScheme.matches ? ramps.dark : ramps.light;
    const bar = element("div", { class: "legend-bar" });
    const colours = [0, 32, 64, 96, 128, 160, 192, 224, 255].map((k) => `rgb(${ramp[k].rgb.join(" ")})`);
    bar.style.background = `linear-gradient(to right, ${colours.join(", ")})`;
    const ticks = element("div", { class: "legend-ticks" });
    [0, 1, 5, 10, 25, 50, 100].forEach((value) => {
      const tick = element("span", {}, value === 100 ? "100 %" : String(value));
      tick.style.left = `${10 * Math.sqrt(value)}%`;
      ticks.append(tick);
    });
    byId("legend").replaceChildren(element("span", {}, "Weight"),
      element("div", { class: "legend-scale" }, bar, ticks));
  }
  function drawDetail() {
    const head = heads[current];
    byId("detail-title").textContent = `Head ${current}`;
    byId("detail-looks").textContent = head.looks;
    drawNumbers(head);
    if (row < 0 || row >= T) row = head.link ? head.link.from : 0;
    drawStrip();
    byId("map-frame").replaceChildren(...(T <= TABLE_LIMIT ? [mapTable()] : mapCanvas()));
    fitMap();
    drawLegend();
  }

  // --- table of all heads ----------------------------------------------------------------------
  const SHARES = ["self", "previous", "next", "first", "last"];
  function drawSummary() {
    const names = ["Head", "Entropy (nats)", "Tokens", "Distance", "Self", "Previous", "Next",
      "First", "Last", "Strongest link", "Looks"];
    const top = element("tr", {}, ...names.map((name) =>
      element("th", { scope: "col", class: name === "Looks" ? "words" : "" }, name)));
    const lines = heads.map((head) => {
      const line = element("tr", { class: head.head === current ? "on" : "" },
        element("th", { scope: "row" }, element("button", {
          type: "button", "aria-label": `Show head ${head.head}`, onclick: () => select(head.head),
        }, String(head.head))),
        element("td", {}, head.entropy_nats.toFixed(2)),
        element("td", {}, head.effective_tokens.toFixed(1)),
        element("td", {}, head.mean_distance.toFixed(1)));
      SHARES.forEach((name) => {
        const cell = element("td", { class: "share" }, percent(head[name]));
        cell.style.setProperty("--p", head[name]);
        line.append(cell);
      });
      line.append(element("td", {}, linkWords(head)), element("td", { class: "words" }, head.looks));
      return line;
    });
    byId("summary").replaceChildren(
      element("caption", {}, "A row for each head: where its weight falls, averaged over the tokens."),
      element("thead", {}, top), element("tbody", {}, ...lines));
  }

  // --- selection -------------------------------------------------------------------------------
  function select(h) {
    current = (h + heads.length) % heads.length;
    row = -1;
    byId("tip").hidden = true;
    document.querySelectorAll(".card").forEach((card, index) => {
      card.setAttribute("aria-pressed", String(index === current));
    });
    document.querySelectorAll("#summary tbody tr").forEach((line, index) => {
      line.classList.toggle("on", index === current);
    });
    drawDetail();
    history.replaceState(null, "", `#head=${current}`);
  }
  // The head to begin with: the one with the clearest place to look at.
  function clearest() {
    const clarity = (head) =>
      Math.max(head.previous, head.next, head.self, head.link ? head.link.share : 0);
    return heads.reduce((best, head) => (clarity(head) > clarity(heads[best]) ? head.head : best), 0);
  }
  function drawAll() {
    drawCards();
    drawDetail();
    drawSummary();
  }

  const asked = /^#head=(\d+)$/.exec(location.hash);
  current = asked && Number(asked[1]) < heads.length ? Number(asked[1]) : clearest();
  byId("step-back").addEventListener("click", () => select(current - 1));
  byId("step-on").addEventListener("click", () => select(current + 1));
  darkScheme.addEventListener("change", drawAll);
  addEventListener("resize", fitMap);
  drawHeader();
  drawAll();
})();
