/**
 * Copies the text of a field and tells the truth about it. The clipboard is missing on plain http; there the old way
 * is tried, with the field selected, so that the keyboard works where that fails too.
 */
export async function copyFrom(field: HTMLTextAreaElement): Promise<boolean> {
  field.focus();
  field.select();
  try {
    await navigator.clipboard.writeText(field.value);
    return true;
  } catch {
    return document.execCommand('copy');
  }
}
