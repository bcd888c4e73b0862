import { Alert, Anchor, Select } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { NoMatch } from '../../lists/empty.tsx';
import { Tools } from '../../lists/page-head.tsx';
import { List } from '../../lists/list.tsx';
import { SearchField } from '../../lists/search-field.tsx';
import { Table } from '../../lists/table.tsx';
import { bytesInWords } from '../../shell/bytes.ts';
import { siteFiles, siteVersions } from '../queries.ts';
import type { DetailSearch } from './detail-search.ts';
import type { Facts, Show } from './facts.ts';

const pageSize = 50;
/** The number of versions in one answer. Older versions are reached by their address. */
const maxOffered = 100;

/** The files of a version. Each can be downloaded, but is never shown on this origin. */
export function Files({
  site,
  actions,
  page = 1,
  search = '',
  version,
  show,
}: Facts & DetailSearch & { show: Show }) {
  const isOwner = actions.reasons.see_versions === null;
  const asked = {
    page,
    limit: pageSize,
    search,
    ...(version === undefined ? {} : { version: String(version) }),
  };
  const hasAny = site.version !== null || version !== undefined;
  const files = useQuery({ ...siteFiles(site.id, asked), enabled: hasAny });
  const versions = useQuery({ ...siteVersions(site.id, 1, maxOffered), enabled: isOwner });
  if (!hasAny) return <NoMatch>Nothing is published yet.</NoMatch>;
  const numbers = versions.data?.data.map(({ number }) => number) ?? [];
  return (
    <>
      <Tools>
        <SearchField
          label="Search by a part of the path"
          placeholder="Part of a path"
          value={search}
          onChange={(text) => show({ version, search: text })}
        />
        {isOwner && (
          <Select
            aria-label="Version"
            allowDeselect={false}
            value={version === undefined ? 'live' : String(version)}
            onChange={(value) => show({ search, version: value === 'live' ? undefined : value })}
            data={[
              { value: 'live', label: `Live (version ${site.version?.number ?? '–'})` },
              ...numbers
                .filter((number) => number !== site.version?.number)
                .map((number) => ({ value: String(number), label: `Version ${number}` })),
            ]}
          />
        )}
      </Tools>
      <List
        what="files"
        found={files}
        empty={
          <NoMatch>
            No file has “<bdi>{search}</bdi>” in its path.
          </NoMatch>
        }
      >
        {(items) => (
          <Table
            caption="Files"
            columns={['Path', 'Size', 'SHA-256']}
            hasActions
            isStale={files.isPlaceholderData}
          >
            {items.map(({ path, size, sha256 }) => (
              <tr key={path}>
                <th scope="row" className="wrap">
                  <bdi>{path}</bdi>
                </th>
                <td data-label="Size">{bytesInWords(size)}</td>
                <td data-label="SHA-256">
                  <code className="wrap" title={sha256}>
                    {sha256.slice(0, 16)}…
                  </code>
                </td>
                <td>
                  <Anchor
                    href={fileAddress(site.id, path, version)}
                    download
                    size="sm"
                    aria-label={`Download ${path}`}
                  >
                    Download
                  </Anchor>
                </td>
              </tr>
            ))}
          </Table>
        )}
      </List>
      {!isOwner && (
        <Alert color="gray" mt="md">
          You see the files of the live version. Only its owner can see earlier versions.
        </Alert>
      )}
    </>
  );
}

function fileAddress(id: string, path: string, version: number | undefined): string {
  const encoded = path.split('/').map(encodeURIComponent).join('/');
  return `/api/v2/sites/${id}/files/${encoded}${version === undefined ? '' : `?version=${version}`}`;
}
