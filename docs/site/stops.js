// A table or a program that is wider than the page scrolls; the keyboard reaches it then.
function updateStops() {
  for (const box of document.querySelectorAll(".md-typeset__scrollwrap, .md-typeset pre > code")) {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  }
}

new ResizeObserver(updateStops).observe(document.body);
new MutationObserver(updateStops).observe(document.body, { childList: true, subtree: true }); // the theme wraps tables
