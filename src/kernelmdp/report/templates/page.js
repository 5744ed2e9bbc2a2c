"use strict";

// Trials: a click on a title sorts by its column; words in the box filter.
(function () {
  const table = document.getElementById("trial-table");
  const body = table.tBodies[0];
  const heads = Array.from(table.tHead.rows[0].cells);
  const rows = Array.from(body.rows);
  const texts = new Map(rows.map((row) => [row, row.textContent.toLowerCase()]));

  function compare(column, numeric, sign) {
    return (one, other) => {
      const [a, b] = [one.cells[column], other.cells[column]];
      if (!numeric) return sign * a.textContent.localeCompare(b.textContent, "en", { numeric: true });
      const [x, y] = [a.dataset.key, b.dataset.key];
      if (x === "" || y === "") return (x === "") - (y === ""); // what is not known comes last
      return sign * (Number(x) - Number(y));
    };
  }

  heads.forEach((head, column) => {
    head.querySelector("button").addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      rows.sort(compare(column, head.dataset.numeric === "yes", down ? -1 : 1));
      body.append(...rows);
    });
  });

  const filter = document.getElementById("filter");
  const shown = document.getElementById("shown");
  filter.addEventListener("input", () => {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const row of rows) {
      row.hidden = !words.every((word) => texts.get(row).includes(word));
      if (!row.hidden) count += 1;
    }
    shown.textContent = `${count} of ${rows.length} trials`;
  });
})();

// Maps: numbers are bytes of their layer's range, 255 where there is none.
(function () {
  const stops = [
    [0, 34, 78], [18, 53, 112], [59, 73, 108], [87, 93, 109], [112, 113, 115],
    [138, 135, 121], [166, 157, 117], [196, 181, 108], [228, 207, 91], [254, 232, 56],
  ];

  function colour(byte) {
    if (byte === 255) return [255, 255, 255];
    const place = (byte / 254) * (stops.length - 1);
    const left = Math.min(Math.floor(place), stops.length - 2);
    return stops[left].map((own, i) => Math.round(own + (place - left) * (stops[left + 1][i] - own)));
  }

  function bytes(text) {
    return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  }

  function line(context, data, codes, width, height, seen) {
    const pad = 14;
    const across = (x) => pad + ((x - data.low[0]) / (data.high[0] - data.low[0] || 1)) * (width - 2 * pad);
    const up = (byte) => height - 2 * pad - (byte / 254) * (height - 3 * pad);
    context.strokeStyle = "#00568a";
    context.lineWidth = 3;
    context.lineJoin = "round";
    context.beginPath();
    let drawing = false;
    codes.forEach((byte, i) => {
      const state = data.states ? data.states[i][0] : data.low[0] + (i / Math.max(1, codes.length - 1)) * (data.high[0] - data.low[0]);
      if (byte === 255) { drawing = false; return; }
      if (drawing) context.lineTo(across(state), up(byte));
      else context.moveTo(across(state), up(byte));
      drawing = true;
    });
    context.stroke();
    context.strokeStyle = "rgba(27, 31, 36, 0.55)";
    context.lineWidth = 1.5;
    context.beginPath();
    for (const [x] of seen) {
      context.moveTo(across(x), height - 4);
      context.lineTo(across(x), height - 18);
    }
    context.stroke();
  }

  function plane(context, data, codes, width, height, seen) {
    const across = (x) => ((x - data.low[0]) / (data.high[0] - data.low[0] || 1)) * width;
    const up = (y) => height - ((y - data.low[1]) / (data.high[1] - data.low[1] || 1)) * height;
    if (data.shape) {
      const [first, second] = data.shape;
      for (let i = 0; i < first; i += 1) {
        for (let j = 0; j < second; j += 1) {
          context.fillStyle = `rgb(${colour(codes[i * second + j])})`;
          const left = Math.floor((i / first) * width);
          const top = Math.floor(((second - 1 - j) / second) * height);
          context.fillRect(left, top, Math.ceil(width / first) + 1, Math.ceil(height / second) + 1);
        }
      }
    } else {
      data.states.forEach(([x, y], i) => {
        context.fillStyle = `rgb(${colour(codes[i])})`;
        context.beginPath();
        context.arc(12 + across(x) * (1 - 24 / width), 12 + up(y) * (1 - 24 / height), 10, 0, 7);
        context.fill();
      });
    }
    context.fillStyle = "rgba(255, 255, 255, 0.9)";
    context.strokeStyle = "rgba(0, 0, 0, 0.75)";
    context.lineWidth = 1;
    for (const [x, y] of seen) {
      context.beginPath();
      context.arc(across(x), up(y), 3.2, 0, 7);
      context.fill();
      context.stroke();
    }
  }

  for (const group of document.querySelectorAll(".maps")) {
    group.querySelector(".interactive").hidden = false;
    const data = JSON.parse(group.querySelector("script").textContent);
    const codes = data.codes.map((frames) => frames.map(bytes));
    const slider = group.querySelector("input");
    const output = group.querySelector("output");
    const canvases = Array.from(group.querySelectorAll("canvas"));

    const draw = () => {
      const frame = Number(slider.value);
      const episode = data.episodes[frame];
      const seen = data.visited.filter((_, i) => data.visitedEpisode[i] <= episode);
      output.textContent = episode;
      slider.setAttribute("aria-valuetext", `after ${episode} episodes`);
      canvases.forEach((canvas, layer) => {
        const context = canvas.getContext("2d");
        const { width, height } = canvas;
        const own = codes[layer][frame];
        const [low, high] = data.ranges[layer];
        const known = own.filter((byte) => byte !== 255);
        const value = (byte) => Number((low + (byte / 254) * (high - low)).toPrecision(3));
        context.fillStyle = "#fff";
        context.fillRect(0, 0, width, height);
        (data.low.length === 2 ? plane : line)(context, data, own, width, height, seen);
        const range = known.length ? `from ${value(Math.min(...known))} to ${value(Math.max(...known))}` : "not known";
        canvas.setAttribute("aria-label", `${data.names[layer]} after ${episode} episodes: ${range}`);
      });
    };
    slider.addEventListener("input", draw);
    draw();
  }
})();
