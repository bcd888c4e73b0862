/**
 * Text to search for. A whole key that a user pastes must reach neither the address nor the server: its public id finds it too.
 * Of a pasted token, too, only the id is left.
 */
export function searchTextFrom(text: string): string {
  return text.replaceAll(/[a-z][a-z0-9]*_(?:pat|svc|fed|upl)_([0-9A-Za-z]{12})[0-9A-Za-z]*/g, '$1').slice(0, 100);
}

/** How the server searches names: anywhere if the text has three letters or digits in a row, else at the start. */
export function searchVerb(text: string): 'contains' | 'begins with' {
  return /[\p{L}\p{N}]{3}/u.test(text) ? 'contains' : 'begins with';
}
