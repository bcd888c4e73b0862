/**
 * Text to search for. Of a key or token that the user pastes, only the public id is left, which also finds the key: the secret
 * must reach neither the address nor the server.
 */
export function searchTextFrom(text: string): string {
  return text
    .replaceAll(/[a-z][a-z0-9]*_(?:pat|svc|fed|upl)_([0-9A-Za-z]{12})[0-9A-Za-z]*/g, '$1')
    .slice(0, 100);
}

/** How the server searches names: anywhere if the text has three letters or digits in a row, else at the start. */
export function searchVerb(text: string): 'contains' | 'begins with' {
  return /[\p{L}\p{N}]{3}/u.test(text) ? 'contains' : 'begins with';
}
