/**
 * Which site a request is for, by its Host header and nothing else (threats T24, T35). Compared with the configured
 * content host exactly: no suffix rules, no normalising beyond letter case, so no two hosts are one origin.
 */
export type HostName =
  | { readonly kind: 'site'; readonly label: string; readonly host: string }
  /** The content host itself. */
  | { readonly kind: 'apex' }
  | { readonly kind: 'foreign' };

export function hostReader(contentUrl: string): (headers: readonly string[]) => HostName {
  const { host } = new URL(contentUrl);
  const suffix = `.${host}`;
  return (sent) => {
    const [name, ...more] = sent;
    if (name === undefined || more.length > 0) return { kind: 'foreign' };
    // Browsers send lower case; other clients may not, and host names have no case (RFC 3986 section 3.2.2).
    const lower = name.toLowerCase();
    if (lower === host) return { kind: 'apex' };
    if (!lower.endsWith(suffix)) return { kind: 'foreign' };
    const label = lower.slice(0, -suffix.length);
    return label === '' || label.includes('.') ? { kind: 'foreign' } : { kind: 'site', label, host: lower };
  };
}
