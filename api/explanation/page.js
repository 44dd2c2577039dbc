for (const root of document.querySelectorAll(".tapeless-explanation:not([data-live])")) {
  root.dataset.live = "";
  const items = [...root.querySelectorAll("[data-key]")];
  const byKey = new Map(items.map((item) => [item.dataset.key, item]));
  const linked = (item) => item.dataset.to.split(" ").map((key) => byKey.get(key)).filter(Boolean);
  const note = root.querySelector("[role=status]");
  let hovered = null, focused = null, pinned = null;

  const show = () => {
    const item = pinned ?? hovered ?? focused;
    const lit = new Set(item ? linked(item) : []);
    for (const other of items) {
      other.classList.toggle("self", other === item);
      other.classList.toggle("lit", lit.has(other));
      other.setAttribute("aria-pressed", String(other === pinned));
    }
    note.textContent = item ? item.dataset.note : note.dataset.hint;
    reveal([...lit].find((other) => other.closest(".source")));
  };

  // Only inside its own panel: the page itself stays where it is.
  const reveal = (line) => {
    const panel = line?.closest(".scroll");
    if (!panel) return;
    const a = panel.getBoundingClientRect(), b = line.getBoundingClientRect();
    if (b.top < a.top) panel.scrollTop -= a.top - b.top + 8;
    if (b.bottom > a.bottom) panel.scrollTop += b.bottom - a.bottom + 8;
  };

  const pin = (item) => { pinned = item === pinned ? null : item; show(); };
  const seen = (item) => item.offsetParent !== null;  // not in a program that is folded away

  const beside = (item, step) => {
    const shown = items.filter((other) => seen(other) && other.dataset.key[0] === item.dataset.key[0]);
    return shown[shown.indexOf(item) + step];
  };
  const across = (item, step) => {
    const phases = "plt", at = phases.indexOf(item.dataset.key[0]);
    if (item.dataset.key[0] === "b") return beside(item, step);  // over time
    return at < 0 ? undefined : linked(item).find((other) => seen(other) && other.dataset.key[0] === phases[at + step]);
  };
  const moves = {
    ArrowUp: (item) => beside(item, -1), ArrowDown: (item) => beside(item, 1),
    ArrowLeft: (item) => across(item, -1), ArrowRight: (item) => across(item, 1),
  };

  const itemOf = (event) => event.target.closest?.("[data-key]") ?? null;
  root.addEventListener("pointerover", (event) => { hovered = itemOf(event); show(); });
  root.addEventListener("pointerleave", () => { hovered = null; show(); });
  root.addEventListener("focusin", (event) => { focused = event.target.matches(":focus-visible") ? itemOf(event) : null; show(); });
  root.addEventListener("focusout", () => { focused = null; show(); });
  root.addEventListener("click", (event) => { const item = itemOf(event); if (item) pin(item); });
  root.addEventListener("keydown", (event) => {
    if (event.key === "Escape") { pinned = null; show(); }
    const item = itemOf(event), next = item && moves[event.key]?.(item);
    const presses = item && item.tagName !== "BUTTON" && ["Enter", " "].includes(event.key);  // a button clicks itself
    if (presses) pin(item);
    if (presses || (item && event.key in moves)) event.preventDefault();
    if (next) next.focus();
  });
}
