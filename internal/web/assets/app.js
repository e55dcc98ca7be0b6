// What the pages do in a browser. Everything on a page is there and right without it.
(() => {
  "use strict";
  const body = document.body;

  // What the page's clock shows, carried on by the browser's monotonic clock: a wrong clock here changes
  // nothing. A test clock stands until it is set, and then the stream tells.
  const still = "still" in body.dataset;
  let told = Date.parse(body.dataset.now), since = performance.now();
  const now = () => still ? told : told + performance.now() - since;

  const two = n => String(n).padStart(2, "0");
  const span = ms => {
    const s = Math.max(0, Math.ceil(ms / 1000)), h = Math.floor(s / 3600), d = Math.floor(s / 86400);
    if (d > 0) return `${d} d ${Math.floor(s % 86400 / 3600)} h`;
    if (h > 0) return `${h} h ${Math.floor(s % 3600 / 60)} min`;
    return `${Math.floor(s / 60)}:${two(s % 60)}`;
  };
  const count = () => {
    for (const t of document.querySelectorAll("time[data-countdown]")) {
      let at = Date.parse(t.dateTime);
      const every = Number(t.dataset.every);
      if (every && at <= now()) at += (Math.floor((now() - at) / every) + 1) * every;
      const text = span(at - now());
      if (t.textContent !== text) t.textContent = text;
    }
  };

  // A link into the portal opens at once; its button is for browsers without script.
  document.querySelector("form[data-at-once]")?.requestSubmit();

  // The filter of many limits. It outlasts what a stream sends again.
  const filter = document.querySelector("[data-filter]");
  const fold = text => text.toLowerCase().toUpperCase(); // ß and ẞ are SS
  const sift = () => {
    if (!filter) return;
    const words = fold(filter.value).split(/\s+/).filter(Boolean);
    for (const e of document.querySelectorAll(`${filter.dataset.filter} [data-find]`)) {
      const text = fold(e.dataset.find);
      e.hidden = !words.every(w => text.includes(w));
    }
  };
  filter?.addEventListener("input", sift);

  // Cards keep their places while a page is open, also when it loads itself again. The server puts those
  // first that are fullest now; one that is new comes after the others.
  const cards = () => [...document.querySelectorAll("#limits > [id]")].map(e => e.id);
  const arrange = (box, order) => {
    const place = e => e.id === "" ? order.length + 1 : order.includes(e.id) ? order.indexOf(e.id) : order.length;
    box.append(...[...box.children].sort((a, b) => place(a) - place(b)));
  };
  const arranged = html => {
    const part = new DOMParser().parseFromString(html, "text/html"), box = part.getElementById("limits");
    if (!box) return html;
    arrange(box, cards());
    return part.body.innerHTML;
  };
  const reload = () => {
    history.replaceState({cards: cards()}, "");
    location.reload();
  };
  if (history.state?.cards) {
    const box = document.getElementById("limits");
    if (box) arrange(box, history.state.cards);
    history.replaceState(null, "");
  }

  // The chart's cursor. The table below the chart is its data.
  for (const plot of document.querySelectorAll("svg[data-chart]")) {
    const table = document.getElementById(plot.dataset.chart), cursor = plot.querySelector(".cursor");
    if (!table) continue;
    const rows = [...table.tBodies[0].rows], names = [...table.tHead.rows[0].cells].map(c => c.textContent.toLowerCase());
    const tip = document.createElement("div");
    tip.className = "tip";
    tip.hidden = true;
    plot.parentElement.append(tip);
    const show = i => {
      const row = rows[i];
      tip.hidden = !row;
      cursor.classList.toggle("on", !!row);
      if (!row) return;
      cursor.setAttribute("x", `${100 * i / rows.length}%`);
      tip.replaceChildren();
      [...row.cells].forEach((cell, n) => {
        const line = document.createElement("div");
        if (n) line.append(Object.assign(document.createElement("b"), {textContent: cell.textContent}), " " + names[n]);
        else line.textContent = cell.textContent;
        tip.append(line);
      });
      const box = plot.getBoundingClientRect();
      const left = plot.parentElement.offsetWidth - box.width + box.width * (i + .5) / rows.length;
      tip.style.left = `${i < rows.length / 2 ? left + 16 : left - tip.offsetWidth - 16}px`; // beside the bar, never on it
    };
    plot.addEventListener("pointermove", e => {
      const box = plot.getBoundingClientRect();
      show(Math.min(rows.length - 1, Math.max(0, Math.floor((e.clientX - box.left) / box.width * rows.length))));
    });
    plot.addEventListener("pointerleave", () => show(-1));
  }

  document.querySelector(".menu")?.addEventListener("click", e => {
    const open = document.querySelector(".rail").classList.toggle("open");
    e.currentTarget.setAttribute("aria-expanded", String(open));
  });
  for (const e of document.querySelectorAll("select[data-submit]")) e.addEventListener("change", () => e.form.requestSubmit());

  // Still, live, paused, stale: what one may believe of the numbers. Without a stream the page says
  // as of when they are, and is loaded again every half minute.
  const sign = document.querySelector("[data-live-sign]"), stream = document.querySelector("[data-live]");
  if (sign && stream) {
    const text = sign.querySelector("[data-text]"), button = sign.querySelector("button");
    const clock = new Intl.DateTimeFormat("en-GB", {timeStyle: "medium", timeZone: body.dataset.zone});
    const began = performance.now();
    let heard = began, waiting = null;
    const asOf = () => "As of " + clock.format(still ? told : now() - (performance.now() - heard));
    const say = (state, words) => {
      if (sign.dataset.state === state) return;
      sign.dataset.state = state;
      text.textContent = words;
      button.hidden = false;
      button.textContent = state === "paused" ? "Resume" : "Pause";
    };
    // A page is loaded again only while somebody answers: old numbers are worth more than an error of the
    // browser's. The session may be over; then the new page says so.
    const again = () => fetch(location.href, {method: "HEAD"}).then(answer => answer.status < 500 && reload(), () => {});
    const later = () => {
      waiting ??= setTimeout(() => {
        waiting = null;
        if (!document.hidden) again();
      }, 30000);
    };
    stream.addEventListener("at", e => {
      if (still && sign.dataset.state === "paused") return;
      told = Number(e.detail.data) || told;
      since = performance.now();
    });
    stream.addEventListener("htmx:sse:before:message", e => {
      const message = e.detail.message;
      if (message.event) return;
      if (sign.dataset.state === "paused") e.preventDefault();
      else message.data = arranged(message.data);
    });
    stream.addEventListener("htmx:sse:after:message", e => {
      sift();
      count();
      if (e.detail.message.event !== "at") return; // only a beat says that all is well
      heard = performance.now();
      clearTimeout(waiting);
      waiting = null;
      if (sign.dataset.state !== "paused") say("live", "Live");
    });
    // A hidden tab holds no stream. htmx closes one when its tab is hidden, and asks for it again
    // later; a tab that was opened hidden asks when it is shown first. htmx has begun by then: its
    // timer is older.
    const listen = () => {
      if (document.hidden || stream.hasAttribute("hx-sse:connect")) return;
      stream.setAttribute("hx-sse:connect", stream.dataset.live);
      window.htmx?.process(stream);
    };
    setTimeout(listen);
    document.addEventListener("visibilitychange", listen);
    stream.addEventListener("over", again);
    stream.addEventListener("full", () => { say("still", asOf()); button.hidden = true; later(); });
    button.addEventListener("click", () => sign.dataset.state === "paused" ? reload() : say("paused", asOf()));
    setInterval(() => {
      const silent = performance.now() - heard > 6000;
      if (silent && sign.dataset.state === "live") say("stale", asOf() + ", reconnecting");
      if (silent && sign.dataset.state !== "paused" && !document.hidden) later();
    }, 1000);
  }

  count();
  setInterval(count, 1000);
})();
