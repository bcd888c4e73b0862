import { wrongUsage } from '../core/failure.ts';

/** The origin of a server's address. Plain http would show the credential to the network. @throws Failure of the code 2 */
export function originOf(address: string, from: string): string {
  const url = URL.parse(address);
  if (url === null || (url.protocol !== 'https:' && url.protocol !== 'http:'))
    throw wrongUsage(`${from} is not the address of a server.`, 'Write it as https://postern.example.com.');
  if (url.username !== '' || url.password !== '')
    throw wrongUsage(`${from} contains a credential.`, 'Remove the part before the @.');
  if (url.pathname !== '/' || url.search !== '' || url.hash !== '')
    throw wrongUsage(`${from} has a path.`, `Write only ${url.origin}.`);
  if (!isProtected(url))
    throw wrongUsage(`${from} is not https.`, 'Only an address of this machine may be http.');
  return url.origin;
}

/** Whether the network cannot read what is sent there: https, or an address of this machine. */
export function isProtected({ protocol, hostname }: URL): boolean {
  const isLoopback = /^(?:(?:.+\.)?localhost|127(?:\.\d{1,3}){3}|\[::1\])$/.test(hostname);
  return protocol === 'https:' || (protocol === 'http:' && isLoopback);
}
