import proxyAddr from '@fastify/proxy-addr';

/** Whether a connection comes from one of our proxies (TRUSTED_PROXIES), by its address. */
export function trustedPeers(trustedProxies: readonly string[]): (address: string | undefined) => boolean {
  if (trustedProxies.length === 0) return () => false;
  const isTrusted = proxyAddr.compile([...trustedProxies]);
  return (address) => address !== undefined && isTrusted(address, 0);
}
