"""What the black-box, differential and crash tests share: starting servers, raw HTTP, signatures."""
