import { lookup } from 'node:dns/promises';
import { BlockList, isIP } from 'node:net';

/**
 * Where requests to addresses that users choose may go, such as the clone URL of a repository. Without this check a user
 * could make Postern connect to the machines around it, or to the metadata service of a cloud (SSRF, CWE-918).
 */
export type Outbound = {
  /**
   * The address to connect to. The caller must connect to exactly this one: the name could resolve to another address a
   * moment later (DNS rebinding).
   */
  addressOf(host: string): Promise<OutboundAddress>;
};

export type OutboundAddress =
  | { readonly kind: 'address'; readonly address: string }
  /** One of the host's addresses is in a private or reserved network. */
  | { readonly kind: 'private' }
  | { readonly kind: 'unknown_host' };

export function createOutbound({
  allowsPrivate,
  lookupMs = 5_000,
  resolve = (host) => lookup(host, { all: true }),
}: {
  /** OUTBOUND_ALLOW_PRIVATE: hosts and networks that may be private. True: all. Link-local addresses never are allowed. */
  readonly allowsPrivate: boolean | readonly string[];
  /** Milliseconds after which a host without an answer of its name server counts as unknown. */
  readonly lookupMs?: number;
  readonly resolve?: (host: string) => Promise<readonly { address: string }[]>;
}): Outbound {
  const allows = allowedPrivate(allowsPrivate);
  /** Running lookups, shared by all callers of a host, because each takes one of the few threads of the process. */
  const asked = new Map<string, Promise<readonly { address: string }[]>>();
  function lookUp(host: string): Promise<readonly { address: string }[]> {
    const known = asked.get(host);
    if (known !== undefined) return known;
    const answer = resolve(host)
      .catch(() => [])
      .finally(() => asked.delete(host));
    asked.set(host, answer);
    return answer;
  }

  return {
    async addressOf(host) {
      const addresses = isIP(host) === 0 ? await within(lookupMs, lookUp(host)) : [{ address: host }];
      const [first] = addresses;
      if (first === undefined) return { kind: 'unknown_host' };
      // All of them must be public: a name that also leads inside is never one of a public server.
      if (!addresses.every(({ address }) => isPublic(address) || allows(host, address)))
        return { kind: 'private' };
      return { kind: 'address', address: first.address };
    },
  };
}

/** Whether an address that is not public may be reached under this name. */
function allowedPrivate(allowed: boolean | readonly string[]): (host: string, address: string) => boolean {
  const hosts = new Set(allowed === true || allowed === false ? [] : allowed.map((one) => one.toLowerCase()));
  const networks = new BlockList();
  for (const one of hosts) {
    const { address, bits } = networkOf(one) ?? {};
    if (address !== undefined && bits !== undefined)
      networks.addSubnet(address, bits, isIP(address) === 4 ? 'ipv4' : 'ipv6');
  }
  return (host, address) => {
    const family = isIP(address) === 4 ? 'ipv4' : 'ipv6';
    if (isIP(address) === 0 || linkLocal.check(address, family)) return false;
    return allowed === true || hosts.has(host.toLowerCase()) || networks.check(address, family);
  };
}

/** Whether it is a host name, an address or a network (CIDR), as OUTBOUND_ALLOW_PRIVATE lists them. */
export function isPrivateTarget(text: string): boolean {
  return networkOf(text) !== undefined || /^(?!-)[a-z0-9-]+(?:\.[a-z0-9-]+)*$/i.test(text);
}

function networkOf(text: string): { readonly address: string; readonly bits: number } | undefined {
  const [address = '', bits, ...more] = text.split('/');
  const most = isIP(address) === 4 ? 32 : isIP(address) === 6 ? 128 : 0;
  if (most === 0 || address.includes('%') || more.length > 0) return undefined;
  if (bits === undefined) return { address, bits: most };
  return /^\d{1,3}$/.test(bits) && Number(bits) <= most ? { address, bits: Number(bits) } : undefined;
}

async function within<T>(ms: number, answer: Promise<readonly T[]>): Promise<readonly T[]> {
  const { promise, resolve } = Promise.withResolvers<readonly T[]>();
  const timer = setTimeout(resolve, ms, []);
  try {
    return await Promise.race([answer, promise]);
  } finally {
    clearTimeout(timer);
  }
}

/** True of addresses that IANA's special-purpose registries (RFC 6890) list as globally reachable unicast. */
export function isPublic(address: string): boolean {
  const family = address.includes('%') ? 0 : isIP(address);
  if (family === 4) return !reserved.check(address, 'ipv4');
  return family === 6 && globalUnicast.check(address, 'ipv6') && !reserved.check(address, 'ipv6');
}

/** In public networks, but not globally reachable unicast (RFC 6890). */
export const reservedNetworks = {
  ipv4: [
    '0.0.0.0/8', // this network
    '10.0.0.0/8', // private
    '100.64.0.0/10', // shared by a carrier, RFC 6598
    '127.0.0.0/8', // loopback
    '168.63.129.16/32', // Azure's service for its machines, although in a public network
    '169.254.0.0/16', // link-local, with the metadata services of clouds
    '172.16.0.0/12', // private
    '192.0.0.0/24', // protocol assignments
    '192.0.2.0/24', // documentation
    '192.88.99.0/24', // 6to4 relays, deprecated
    '192.168.0.0/16', // private
    '198.18.0.0/15', // benchmarks
    '198.51.100.0/24', // documentation
    '203.0.113.0/24', // documentation
    '224.0.0.0/3', // multicast and reserved
  ],
  ipv6: [
    '2001::/23', // protocol assignments, such as Teredo, which embeds IPv4 addresses
    '2001:db8::/32', // documentation
    '2002::/16', // 6to4, which embeds IPv4 addresses
    '3fff::/20', // documentation
  ],
} as const;

const reserved = new BlockList();
for (const family of ['ipv4', 'ipv6'] as const)
  for (const network of reservedNetworks[family]) {
    const [address = '', bits = ''] = network.split('/');
    reserved.addSubnet(address, Number(bits), family);
  }

/** Metadata services of clouds, which hand out credentials, are here (RFC 3927, RFC 4291 section 2.5.6). */
const linkLocal = new BlockList();
linkLocal.addSubnet('169.254.0.0', 16, 'ipv4');
linkLocal.addSubnet('fe80::', 10, 'ipv6');

/** RFC 4291 section 2.4. Loopback, private, link-local, mapped and translated addresses are outside. */
const globalUnicast = new BlockList();
globalUnicast.addSubnet('2000::', 3, 'ipv6');
