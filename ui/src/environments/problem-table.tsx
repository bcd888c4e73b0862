import type { Schemas } from '../api/contract.ts';
import { Table } from '../lists/table.tsx';
import { Wrapped } from '../lists/wrapped.tsx';

type TableProps = {
  readonly problems: readonly Schemas['ConfigurationFileProblem'][];
  readonly isStale?: boolean;
};

/** The problems of a postern.yaml, each with its place and its fix. */
export function ProblemTable({ problems, isStale = false }: TableProps) {
  return (
    <Table caption="Problems" columns={['Line', 'Field', 'Problem and fix']} isStale={isStale}>
      {problems.map(({ line, column, path, message, fix }, at) => (
        // One variable can have two problems; problems never change places.
        // oxlint-disable-next-line react/no-array-index-key
        <tr key={at}>
          <td data-label="Line">
            {line}:{column}
          </td>
          <td data-label="Field" className="wrap">
            <code>
              <Wrapped text={path} />
            </code>
          </td>
          <td data-label="Problem and fix" className="wrap">
            {message} {fix}
          </td>
        </tr>
      ))}
    </Table>
  );
}
