import { Button, Title } from '@mantine/core';
import { Link } from '@tanstack/react-router';

export function NotFound() {
  return (
    <>
      <title>No such page · Postern</title>
      <Title order={1} size="h2">
        There is no such page
      </Title>
      <p className="quiet">The address may be mistyped, or the page has moved.</p>
      <Button component={Link} to="/">
        Go to the start
      </Button>
    </>
  );
}
