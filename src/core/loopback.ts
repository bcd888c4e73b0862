/** True of host names that lead to this machine alone, as `URL.hostname` writes them (RFC 6761 section 6.3, RFC 1122 section 3.2.1.3). */
export function isLoopback(hostname: string): boolean {
  return /^(?:(?:.*\.)?localhost|127(?:\.\d{1,3}){3}|\[::1\])$/.test(hostname);
}
