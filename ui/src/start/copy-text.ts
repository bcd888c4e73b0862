/** Copies what an element says, and tells the truth about it. Where there is no clipboard (plain http), the old way. */
export async function copyText(element: HTMLElement): Promise<boolean> {
  getSelection()?.selectAllChildren(element);
  try {
    await navigator.clipboard.writeText(element.textContent);
    return true;
  } catch {
    return document.execCommand('copy');
  }
}
