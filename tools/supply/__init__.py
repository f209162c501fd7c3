"""What a release is made of: pins, licences, secrets, images, an SBOM, and the packages themselves."""
