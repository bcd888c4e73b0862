import { queryOptions } from '@tanstack/react-query';

/** The SHA-256 of the command line that this server serves; null = it serves none. */
export const commandLineDigest = queryOptions({
  queryKey: ['command-line'],
  async queryFn({ signal }) {
    const response = await fetch('/cli/postern.mjs.sha256', { signal });
    const [digest = ''] = response.ok ? (await response.text()).split(' ') : [];
    return /^[0-9a-f]{64}$/.test(digest) ? digest : null;
  },
});
