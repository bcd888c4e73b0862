/** Where a clone URL leads. `ssh` also for the short form git@host:path. */
export type RemoteAddress =
  | {
      readonly protocol: 'https' | 'ssh';
      readonly host: string;
      readonly port: number;
      readonly origin: string;
    }
  | { readonly protocol: 'file'; readonly origin: string };

/** Undefined when the URL has another form than the registry of repositories accepts. */
export function remoteAddress(cloneUrl: string): RemoteAddress | undefined {
  // The form of scp, such as git@host:owner/name.git.
  const host = /^[\w.-]+@([A-Za-z0-9.-]+):(?!\/\/)/.exec(cloneUrl)?.[1];
  if (host !== undefined) return sshTo(host, 22);
  const url = URL.parse(cloneUrl);
  if (url?.protocol === 'https:')
    return { protocol: 'https', host: url.hostname, port: Number(url.port || 443), origin: url.origin };
  if (url?.protocol === 'ssh:') return sshTo(url.hostname, Number(url.port || 22));
  return url?.protocol === 'file:' ? { protocol: 'file', origin: 'file://' } : undefined;
}

/** How known_hosts names a server (sshd(8), "SSH_KNOWN_HOSTS FILE FORMAT"). */
export function knownHostsName({ host, port }: { host: string; port: number }): string {
  return port === 22 ? host : `[${host}]:${port}`;
}

function sshTo(host: string, port: number): RemoteAddress {
  return { protocol: 'ssh', host, port, origin: `ssh://${host}:${port}` };
}
