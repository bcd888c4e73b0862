/** Focuses the element if the one that had the focus has left the page. Otherwise a keyboard user keeps their place. */
export function focusIfLost(element: HTMLElement | null): void {
  if (document.activeElement === document.body) element?.focus();
}
