/**
 * Commands to paste into a shell. The value of a key is in the variable POSTERN_KEY, never in the text. No line follows
 * one that prompts for input, because the prompt would read it as the input.
 */
const auth = '-H "Authorization: Bearer $POSTERN_KEY"';

/** Asks for the value, shows nothing of it, and leaves it in no history. */
export const readKey = "printf 'Key: ' && read -rs POSTERN_KEY && export POSTERN_KEY && echo";

export function askWhoAmI(): string {
  return `curl ${location.origin}/api/v2/auth/context \\\n  ${auth}`;
}

/** A new site of one page, in the folder where one is. */
export function publishPage(): string {
  return `echo '<h1>Hello</h1>' > index.html\ncurl ${location.origin}/api/v2/sites \\\n  ${auth} \\\n  -F name=Hello -F visibility=public -F file=@index.html`;
}

/** The next version of a site, from the folder `my-site`. */
export function publishFolder(siteId: string): string {
  return `tar -cz -C my-site . | curl -X PUT -F 'file=@-;filename=site.tar.gz' \\\n  ${auth} \\\n  ${location.origin}/api/v2/sites/${siteId}/content`;
}
