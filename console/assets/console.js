// The page works without this file. It reads again what is alive, while somebody looks, and helps to write filters.
(() => {
  'use strict';
  const live = () => document.querySelector('#live[data-refresh]');
  const pause = document.getElementById('pause');
  const lost = document.getElementById('lost');
  let paused = false;
  let timer = 0;

  // A narrow window does not show all of the menu: the screen that is open is to be seen there.
  const menu = document.querySelector('.menu');
  const here = menu && menu.querySelector('[aria-current]');
  if (here) menu.scrollLeft = here.offsetLeft - menu.offsetLeft - (menu.clientWidth - here.offsetWidth) / 2;

  const busy = () => {
    const part = live();
    const focus = document.activeElement;
    return !part || part.querySelector('details[open]') !== null || (part.contains(focus) && focus.matches('input, textarea, select'));
  };
  const plan = () => {
    clearTimeout(timer);
    const part = live();
    if (!part || paused || document.hidden) return;
    timer = setTimeout(() => {
      if (busy()) return plan();
      htmx.trigger(part, 'refresh');
    }, Number(part.dataset.refresh) * 1000);
  };
  if (pause) {
    pause.hidden = false;
    pause.addEventListener('click', () => {
      paused = !paused;
      pause.setAttribute('aria-pressed', String(paused));
      pause.textContent = paused ? 'Go on' : 'Pause';
      if (!paused && live()) htmx.trigger(live(), 'refresh');
      plan();
    });
  }
  document.addEventListener('visibilitychange', () => {
    if (!document.hidden && !paused && live()) htmx.trigger(live(), 'refresh');
    plan();
  });
  // What was asked for before a pause, or before the tab was hidden, changes nothing any more.
  document.body.addEventListener('htmx:beforeSwap', (event) => {
    if (paused || document.hidden) event.detail.shouldSwap = false;
    const failed = event.detail.xhr.status >= 400;
    lost.hidden = !failed;
    if (failed) event.detail.shouldSwap = false;
  });
  document.body.addEventListener('htmx:sendError', () => { lost.hidden = false; });
  document.body.addEventListener('htmx:afterRequest', plan);
  document.body.addEventListener('htmx:afterSettle', plan);

  // The element that had the focus has it again after a refresh.
  let focused = '';
  document.body.addEventListener('htmx:beforeSwap', () => {
    const at = document.activeElement;
    focused = at && live() && live().contains(at) ? at.getAttribute('href') || at.id : '';
  });
  document.body.addEventListener('htmx:afterSwap', () => {
    if (!focused) return;
    const again = document.getElementById(focused) || document.querySelector(`#live [href="${CSS.escape(focused)}"]`);
    if (again) again.focus({ preventScroll: true });
  });

  // A filter's last word is completed from the words that the page has.
  const filter = document.getElementById('filter');
  const words = document.getElementById('words');
  if (filter && words) {
    const all = Array.from(words.options, (option) => option.value);
    const complete = () => {
      const cut = filter.value.lastIndexOf(' ') + 1;
      const before = filter.value.slice(0, cut);
      const word = filter.value.slice(cut);
      const fit = all.filter((w) => w.startsWith(word) && w !== word).slice(0, 12);
      words.replaceChildren(...fit.map((w) => { const o = document.createElement('option'); o.value = before + w; return o; }));
    };
    filter.addEventListener('input', complete);
    filter.addEventListener('focus', complete);
  }

  // All of a page's rows are picked at once; what is picked is counted on the button.
  const count = () => {
    const picked = document.querySelectorAll('input[name=id]:checked').length;
    for (const out of document.querySelectorAll('[data-count]')) out.textContent = picked ? ` ${picked}` : '';
  };
  document.addEventListener('change', (event) => {
    if (event.target.id === 'all') {
      for (const box of document.querySelectorAll('input[name=id]')) box.checked = event.target.checked;
    }
    count();
  });

  document.addEventListener('click', async (event) => {
    const button = event.target.closest('[data-copy]');
    if (!button) return;
    const text = document.getElementById(button.dataset.copy).textContent;
    try {
      await navigator.clipboard.writeText(text);
    } catch { // plain HTTP has no clipboard: the text is selected, to be copied by hand
      const range = document.createRange();
      range.selectNodeContents(document.getElementById(button.dataset.copy));
      getSelection().removeAllRanges();
      getSelection().addRange(range);
      return;
    }
    button.textContent = 'Copied';
  });

  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches('input, textarea, select')) return;
    if (event.key === '/' && filter) { event.preventDefault(); filter.focus(); }
    if (event.key === 'p' && pause) pause.click();
  });
  plan();
})();
