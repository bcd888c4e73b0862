import { Button } from '@mantine/core';
import { useState } from 'react';
import type { Finding } from './precheck.ts';
import cards from './upload.module.css';

const atFirst = 10;

/** One entry for each problem, the file first. */
export function Findings({ found }: { found: readonly Finding[] }) {
  const [isWhole, setWhole] = useState(false);
  const shown = isWhole ? found : found.slice(0, atFirst);
  return (
    <>
      <ul className={cards['findings']}>
        {shown.map(({ path, problem }) => (
          <li key={`${path} ${problem}`}>
            {path !== '' && (
              <>
                <bdi>
                  <code>{path}</code>
                </bdi>{' '}
              </>
            )}
            {problem}
          </li>
        ))}
      </ul>
      {found.length > shown.length && (
        <Button variant="default" size="xs" mt="xs" onClick={() => setWhole(true)}>
          Show all {found.length}
        </Button>
      )}
    </>
  );
}
