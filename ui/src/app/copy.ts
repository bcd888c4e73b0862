/**
 * Copies what an element shows, and tells the truth about it. The clipboard is missing on plain http and may be denied;
 * then the old way is tried. It is left selected, so that the keyboard can copy it where that fails too.
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
