/**
 * Copies what an element shows and reports whether that worked. The clipboard API is missing on plain http and may be
 * denied; then `execCommand` is tried. The text stays selected, so that the user can copy it by keyboard if that fails too.
 */
export async function copyFrom(element: HTMLElement): Promise<boolean> {
  const text = select(element);
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return document.execCommand('copy');
  }
}

function select(element: HTMLElement): string {
  if (element instanceof HTMLInputElement || element instanceof HTMLTextAreaElement) {
    element.focus();
    element.select();
    return element.value;
  }
  getSelection()?.selectAllChildren(element);
  return element.textContent;
}
