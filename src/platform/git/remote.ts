/** Where a clone URL leads. `ssh` also for the short form git@host:path. */
export type RemoteAddress =
  | { readonly protocol: 'https'; readonly host: string; readonly port: number; readonly origin: string }
  | { readonly protocol: 'ssh'; readonly host: string; readonly port: number; readonly origin: string }
  | { readonly protocol: 'file'; readonly origin: string };

/** Undefined when the URL has another form than the registry of repositories accepts. */
export function remoteAddress(cloneUrl: string): RemoteAddress | undefined {
  // The form of scp, such as git@host:owner/name.git.
  const host = /^[\w.-]+@([A-Za-z0-9.-]+):(?!\/\/)/.exec(cloneUrl)?.[1];
  if (host !== undefined) return sshTo(host, 22);
  if (!URL.canParse(cloneUrl)) return undefined;
  const { protocol, hostname, port } = new URL(cloneUrl);
  if (protocol === 'https:')
    return {
      protocol: 'https',
      host: hostname,
      port: Number(port || 443),
      origin: new URL(cloneUrl).origin,
    };
  if (protocol === 'ssh:') return sshTo(hostname, Number(port || 22));
  return protocol === 'file:' ? { protocol: 'file', origin: 'file://' } : undefined;
}

function sshTo(host: string, port: number): RemoteAddress {
  return { protocol: 'ssh', host, port, origin: `ssh://${host}:${port}` };
}
