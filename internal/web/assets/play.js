// The playground's script. The page is whole without it: a form that is sent by its button. With it
// a change shows at once, hits come as they play, and the Hit button hits now.
(() => {
  "use strict";
  const form = document.querySelector("form[data-play]");
  if (!form) return;
  const plays = () => document.getElementById("plays");
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  const grouped = n => String(n).replace(/\B(?=(\d{3})+$)/g, ",");
  let timer = 0, asking = null, moving = 0;

  // What the form asks for, as its address.
  const address = () => {
    const fields = new URLSearchParams();
    for (const [name, value] of new FormData(form)) fields.append(name, value);
    return form.getAttribute("action") + "?" + fields;
  };

  // Each field's own problem, as the new page says it.
  const mark = page => {
    for (const was of form.querySelectorAll("[data-wrong]")) {
      const is = page.querySelector(`form[data-play] [data-wrong="${was.dataset.wrong}"]`), field = form.elements[was.dataset.wrong];
      was.textContent = is ? is.textContent : "";
      was.hidden = !was.textContent;
      if (!(field instanceof Element)) continue;
      if (was.hidden) field.removeAttribute("aria-invalid");
      else field.setAttribute("aria-invalid", "true");
    }
  };

  const play = async (to, move) => {
    clearTimeout(timer);
    asking?.abort();
    asking = new AbortController();
    plays().setAttribute("aria-busy", "true");
    try {
      const answer = await fetch(to, {signal: asking.signal});
      const page = new DOMParser().parseFromString(await answer.text(), "text/html"), fresh = page.getElementById("plays");
      if (!fresh) {
        location.assign(to);
        return;
      }
      mark(page);
      cancelAnimationFrame(moving);
      plays().replaceWith(document.adoptNode(fresh));
      for (const link of document.querySelectorAll(".presets a")) {
        const same = page.querySelector(`.presets a[href="${CSS.escape(link.getAttribute("href"))}"]`);
        if (same?.hasAttribute("aria-current")) link.setAttribute("aria-current", "true");
        else link.removeAttribute("aria-current");
      }
      const windows = page.getElementById("windows");
      if (windows && form.elements.windows) form.elements.windows.value = windows.value;
      history.replaceState(null, "", answer.url);
      if (move) sweep();
    } catch (e) {
      if (e.name !== "AbortError") plays().removeAttribute("aria-busy");
    }
  };

  // Hits come as they play: a veil moves off the charts, and the counts grow with it.
  const sweep = () => {
    if (still.matches) return;
    const all = [...plays().querySelectorAll(".play")].map(article => ({
      veil: article.querySelector(".veil"), admitted: article.querySelector("[data-admitted]"), refused: article.querySelector("[data-refused]"),
      parts: article.dataset.bins.split(",").map(part => part.split(".").map(Number)),
    }));
    const began = performance.now(), lasts = 2400;
    const frame = now => {
      const share = Math.min(1, (now - began) / lasts);
      for (const one of all) {
        let admitted = 0, refused = 0;
        for (const [a, r] of one.parts.slice(0, Math.ceil(share * one.parts.length))) {
          admitted += a;
          refused += r;
        }
        one.veil.setAttribute("x", `${100 * share}%`);
        one.veil.setAttribute("width", `${100 - 100 * share}%`);
        one.admitted.textContent = grouped(admitted);
        if (one.refused) one.refused.textContent = grouped(refused);
      }
      if (share < 1) moving = requestAnimationFrame(frame);
    };
    moving = requestAnimationFrame(frame);
  };

  const soon = () => {
    clearTimeout(timer);
    timer = setTimeout(() => play(address(), false), 250);
  };
  form.addEventListener("input", e => { if (e.target.type !== "radio") soon(); });
  form.addEventListener("change", e => { if (e.target.type === "radio" || e.target.tagName === "SELECT") play(address(), true); });

  // A hit now: so many seconds after the first one, or after the last one of the list.
  let began = 0, from = 0;
  const hit = () => {
    const list = form.elements.hits, words = list.value.trim().split(/[\s,;]+/).filter(Boolean);
    if (!began) {
      began = performance.now();
      from = words.length ? Math.max(...words.map(w => parseFloat(w) || 0)) + 1 : 0;
    }
    list.value = [...words, (from + (performance.now() - began) / 1000).toFixed(3)].join(" ");
    form.querySelector("input[name=pattern][value=own]").checked = true;
    play(address(), false);
  };
  form.addEventListener("submit", e => {
    e.preventDefault();
    if (e.submitter?.hasAttribute("data-hit")) hit();
    else play(address(), true);
  });
})();
