import { isIP } from 'node:net';

/** Where a clone URL leads. `ssh` also for the short form git@host:path. */
export type RemoteAddress =
  | {
      readonly protocol: 'https' | 'ssh';
      readonly host: string;
      readonly port: number;
      readonly origin: string;
      /** What git is given: for https in the form that was checked, because curl reads some forms differently. */
      readonly url: string;
    }
  | { readonly protocol: 'file'; readonly origin: string; readonly url: string };

/** The names that `git check-ref-format --branch` allows. */
export const branchNamePattern =
  // oxlint-disable-next-line no-control-regex -- git refuses them
  /^(?![-./]|[\s\S]*(?:\.\.|\/\/|\/\.|@\{|\.lock(?:\/|$)))[^\x00-\x20\x7f~^:?*[\\]*[^\x00-\x20\x7f~^:?*[\\./]$/;

/** Undefined when the URL has another form than the registry of repositories accepts. */
export function remoteAddress(cloneUrl: string): RemoteAddress | undefined {
  // The form of scp, such as git@host:owner/name.git.
  const host = /^[\w.-]+@([A-Za-z0-9.-]+):(?!\/\/)/.exec(cloneUrl)?.[1];
  if (host !== undefined) return sshTo(host, 22, cloneUrl);
  const url = URL.parse(cloneUrl);
  if (url?.protocol === 'https:' && isHost(url.hostname))
    return {
      protocol: 'https',
      host: url.hostname,
      port: Number(url.port || 443),
      origin: url.origin,
      url: url.href,
    };
  if (url?.protocol === 'ssh:') return sshTo(url.hostname, Number(url.port || 22), cloneUrl);
  return url?.protocol === 'file:' ? { protocol: 'file', origin: 'file://', url: cloneUrl } : undefined;
}

/** How known_hosts names a server (sshd(8), "SSH_KNOWN_HOSTS FILE FORMAT"). */
export function knownHostsName({ host, port }: { host: string; port: number }): string {
  return port === 22 ? host : `[${host}]:${port}`;
}

/**
 * A name in the form of RFC 1123 section 2.1, or an address. curl reads a host that begins with a hyphen as an option of
 * the list of addresses that it must use, and would then ask the name service itself.
 */
function isHost(host: string): boolean {
  const isName = host.split('.').every((label) => /^(?!-)[A-Za-z0-9_-]+(?<!-)$/.test(label));
  const isNumeric = /(?:^|\.)(?:\d+|0x[\da-f]*)$/i.test(host);
  return isIP(host) === 4 || (isName && !isNumeric);
}

function sshTo(host: string, port: number, url: string): RemoteAddress | undefined {
  return isHost(host) ? { protocol: 'ssh', host, port, origin: `ssh://${host}:${port}`, url } : undefined;
}
