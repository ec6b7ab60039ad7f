// The page's colours: the system's until the reader chooses. Runs before anything is drawn.
(() => {
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  let choice = null; // "light" or "dark"
  try {
    choice = localStorage.getItem("colours");
  } catch {
    // Storage is off: the choice lasts as long as the page.
  }
  const paint = () => {
    const theme = choice ?? (dark.matches ? "dark" : "light");
    document.documentElement.classList.toggle("dark-mode", theme === "dark");
    document.getElementById("theme")?.setAttribute("aria-label", `Colours: ${theme}, change to ${theme === "dark" ? "light" : "dark"}`);
  };
  dark.addEventListener("change", paint);
  paint();
  addEventListener("DOMContentLoaded", () => {
    paint();
    document.getElementById("theme").addEventListener("click", () => {
      choice = document.documentElement.classList.contains("dark-mode") ? "light" : "dark";
      try {
        localStorage.setItem("colours", choice);
      } catch {
        // As above.
      }
      paint();
    });
  });
})();
