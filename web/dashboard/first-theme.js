// Loaded before the first paint: a stored choice must not flash in the other colours.
(() => {
  try {
    const choice = localStorage.getItem('skillbox-theme');
    if (choice === 'light' || choice === 'dark') document.documentElement.dataset.theme = choice;
  } catch {
    // Without storage the page follows the system.
  }
})();
