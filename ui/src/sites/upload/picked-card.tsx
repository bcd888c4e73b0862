import { Alert, Button, Text } from '@mantine/core';
import { CheckIcon, FileIcon, FolderIcon } from '../../shell/icons.tsx';
import { bytesInWords } from '../../shell/bytes.ts';
import { countOf } from '../../shell/count.ts';
import styles from '../../shell/page.module.css';
import { StartPageField } from '../start-page-field.tsx';
import { Findings } from './findings.tsx';
import { type Checked, onlyFolder, withoutRefused } from './precheck.ts';
import { type Picked, renamedPage } from './picked.ts';
import cards from './upload.module.css';

/** What was checked here, and what the server checks later. */
const goodWords: Readonly<Record<Picked['kind'], string>> = {
  folder:
    'Names and sizes are within the limits. The server also checks the content of the files before anything goes live.',
  archive:
    'The size is within the limit. The server also checks the names and files inside before anything goes live.',
  page: 'The size is within the limit. The server also checks the content of the page before it goes live.',
};

type CardProps = {
  readonly checked: Checked;
  readonly onPicked: (picked: Picked | null) => void;
};

/** The chosen files and their problems, before anything is sent. */
export function PickedCard({ checked, onPicked }: CardProps) {
  const { picked, files, bytes, problems, leftOut, ignored, warnings, pages, startFolder } = checked;
  const refused = problems.filter(({ path }) => path !== '').length;
  const isFolder = picked.kind === 'folder';
  const name = isFolder ? picked.name : picked.file.name;
  return (
    <section className={styles['card']} aria-label="What was chosen">
      <div className={cards['picked']}>
        <span className={cards['picture']}>{isFolder ? <FolderIcon /> : <FileIcon />}</span>
        <div className={cards['what']}>
          <b>
            <bdi>{name === '' ? 'Chosen files' : name}</bdi>
          </b>
          <span className="quiet">
            {isFolder && `${countOf(files.length, 'file')} · `}
            {bytesInWords(bytes)}
            {ignored > 0 && ` · ${countOf(ignored, 'system file')} skipped, such as .DS_Store`}
          </span>
        </div>
        <Button variant="default" size="xs" onClick={() => onPicked(null)}>
          Choose another
        </Button>
      </div>
      {problems.length > 0 && (
        <Alert
          color="red"
          mt="md"
          role="alert"
          title={`Fix ${countOf(problems.length, 'problem')} before publishing`}
        >
          <Findings found={problems} />
          {isFolder && refused > 0 && refused < files.length && (
            <Button size="xs" mt="sm" variant="default" onClick={() => onPicked(withoutRefused(checked))}>
              Publish without {refused === 1 ? 'this file' : `these ${refused} files`}
            </Button>
          )}
        </Alert>
      )}
      {startFolder !== null && (
        <Alert color="yellow" mt="md" title={`The start page is in ${startFolder}/`}>
          <Text size="sm" mb="xs">
            There is no index.html at the top, but <code>{startFolder}/</code> has one. Usually that folder is
            the site.
          </Text>
          <Button size="xs" variant="default" onClick={() => onPicked(onlyFolder(picked, startFolder))}>
            Publish {startFolder}/ alone
          </Button>
        </Alert>
      )}
      {warnings.length === 0 && isFolder && typeof picked.startPage === 'string' && pages.length > 0 && (
        <StartPageField
          pages={pages}
          value={picked.startPage}
          onChange={(startPage) => onPicked({ ...picked, startPage })}
        />
      )}
      {startFolder === null && warnings.length > 0 && (
        <Alert color="yellow" mt="md" title="Before you publish">
          {warnings.map((warning) => (
            <Text size="sm" key={warning}>
              {warning}
            </Text>
          ))}
          {isFolder && pages.length > 0 && (
            <StartPageField
              pages={pages}
              value={picked.startPage ?? null}
              onChange={(startPage) => onPicked({ ...picked, startPage })}
            />
          )}
        </Alert>
      )}
      {leftOut.length > 0 && (
        <Alert
          color="yellow"
          mt="md"
          title={`${countOf(leftOut.length, 'entry', 'entries')} will not be sent`}
        >
          <Findings found={leftOut} />
        </Alert>
      )}
      {problems.length === 0 && leftOut.length === 0 && warnings.length === 0 && (
        <p className={cards['good']}>
          <CheckIcon size={16} />
          {goodWords[picked.kind]}
        </p>
      )}
      {renamedPage(picked) !== null && (
        <p className={styles['reason']}>
          It is published as <code>index.html</code>, so that the address of the site shows it.
        </p>
      )}
    </section>
  );
}
