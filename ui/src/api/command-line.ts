import { queryOptions } from '@tanstack/react-query';

/** The version of this server, and the SHA-256 of the command line that it serves; null = it serves none. */
export const commandLine = queryOptions({
  queryKey: ['command-line'],
  async queryFn({ signal }) {
    const response = await fetch('/cli/postern.mjs.sha256', { signal });
    const [digest = ''] = response.ok ? (await response.text()).split(' ') : [];
    const version = response.headers.get('postern-version');
    return { version, digest: /^[0-9a-f]{64}$/.test(digest) ? digest : null };
  },
});
